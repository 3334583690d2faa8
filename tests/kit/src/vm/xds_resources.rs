//! Clusters, endpoints and listeners as a control plane sends them.

use std::net::SocketAddr;
use std::time::Duration;

use envoy_types::pb::envoy::config::cluster::v3::Cluster;
use envoy_types::pb::envoy::config::cluster::v3::cluster::{
    ClusterDiscoveryType, DiscoveryType, EdsClusterConfig, LbPolicy,
};
use envoy_types::pb::envoy::config::core::v3::config_source::ConfigSourceSpecifier;
use envoy_types::pb::envoy::config::core::v3::data_source::Specifier;
use envoy_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use envoy_types::pb::envoy::config::core::v3::{
    Address, AggregatedConfigSource, ApiVersion, ConfigSource, DataSource, Locality, SocketAddress, address,
};
use envoy_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use envoy_types::pb::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints,
};
use envoy_types::pb::envoy::config::listener::v3::filter::ConfigType;
use envoy_types::pb::envoy::config::listener::v3::{Filter, FilterChain, Listener};
use envoy_types::pb::envoy::extensions::filters::network::direct_response::v3::Config as DirectResponse;
use envoy_types::pb::google::protobuf::Any;
use prost::Message;

use super::scripted_ads::CLUSTER_LOAD_ASSIGNMENT;

/// The type URL of a cluster.
pub const CLUSTER: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
/// The type URL of a listener.
pub const LISTENER: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";

/// Returns the name of a cluster, as Istio names those of a service.
pub fn cluster_name(number: u8) -> String {
    format!("outbound|80||service-{number}.shop.svc.cluster.local")
}

/// Returns clusters whose endpoints come by ADS.
pub fn clusters(count: u8) -> Vec<Any> {
    (0..count).map(|number| cluster(&cluster_name(number), Duration::default())).collect()
}

/// Returns a cluster whose endpoints come by ADS. Zero means Envoy's own connect timeout.
pub fn cluster(name: &str, connect_timeout: Duration) -> Any {
    let source = ConfigSource {
        resource_api_version: ApiVersion::V3.into(),
        // The cluster warms until its endpoints are sent, however long that takes.
        initial_fetch_timeout: Some(Default::default()),
        config_source_specifier: Some(ConfigSourceSpecifier::Ads(AggregatedConfigSource::default())),
        ..ConfigSource::default()
    };
    let timeout = (!connect_timeout.is_zero()).then(|| {
        let seconds = i64::try_from(connect_timeout.as_secs()).expect("a short time");
        envoy_types::pb::google::protobuf::Duration { seconds, nanos: 0 }
    });
    let cluster = Cluster {
        name: name.to_owned(),
        connect_timeout: timeout,
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::Eds.into())),
        eds_cluster_config: Some(EdsClusterConfig { eds_config: Some(source), ..Default::default() }),
        ..Cluster::default()
    };
    any(CLUSTER, &cluster)
}

/// Returns a cluster that Envoy rejects: the load balancer does not fit the type.
pub fn invalid_cluster(name: &str) -> Any {
    let cluster = Cluster {
        name: name.to_owned(),
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::OriginalDst.into())),
        lb_policy: LbPolicy::RingHash.into(),
        ..Cluster::default()
    };
    any(CLUSTER, &cluster)
}

/// Returns the endpoints of a cluster: one, at this address.
pub fn assignment(cluster: &str, address: SocketAddr) -> Any {
    let endpoints = vec![LocalityLbEndpoints {
        lb_endpoints: vec![endpoint(socket_address(address))],
        ..LocalityLbEndpoints::default()
    }];
    let assignment =
        ClusterLoadAssignment { cluster_name: cluster.to_owned(), endpoints, ..Default::default() };
    any(CLUSTER_LOAD_ASSIGNMENT, &assignment)
}

/// Returns a listener that sends a text to each connection.
pub fn listener(name: &str, address: SocketAddr, text: &str) -> Any {
    let source =
        DataSource { specifier: Some(Specifier::InlineString(text.to_owned())), ..Default::default() };
    let config = any(
        "type.googleapis.com/envoy.extensions.filters.network.direct_response.v3.Config",
        &DirectResponse { response: Some(source) },
    );
    let filter = Filter { name: "text".to_owned(), config_type: Some(ConfigType::TypedConfig(config)) };
    let listener = Listener {
        name: name.to_owned(),
        address: Some(socket_address(address)),
        filter_chains: vec![FilterChain { filters: vec![filter], ..FilterChain::default() }],
        ..Listener::default()
    };
    any(LISTENER, &listener)
}

/// Returns the endpoints of `clusters` clusters, `endpoints` for each; the name of a locality makes each
/// resource larger by `padding` bytes.
pub fn assignments(clusters: u8, endpoints: u8, padding: usize) -> Vec<Any> {
    let locality = Locality { region: "r".repeat(padding), ..Locality::default() };
    let assignment = |cluster| ClusterLoadAssignment {
        cluster_name: cluster_name(cluster),
        endpoints: vec![LocalityLbEndpoints {
            locality: Some(locality.clone()),
            lb_endpoints: (0..endpoints)
                .map(|number| endpoint(socket_address(([10, 0, cluster, number], 8080).into())))
                .collect(),
            ..LocalityLbEndpoints::default()
        }],
        ..ClusterLoadAssignment::default()
    };
    (0..clusters).map(|cluster| any(CLUSTER_LOAD_ASSIGNMENT, &assignment(cluster))).collect()
}

fn socket_address(address: SocketAddr) -> Address {
    let socket = SocketAddress {
        address: address.ip().to_string(),
        port_specifier: Some(PortSpecifier::PortValue(address.port().into())),
        ..SocketAddress::default()
    };
    Address { address: Some(address::Address::SocketAddress(socket)) }
}

fn endpoint(address: Address) -> LbEndpoint {
    let endpoint = Endpoint { address: Some(address), ..Endpoint::default() };
    LbEndpoint { host_identifier: Some(HostIdentifier::Endpoint(endpoint)), ..LbEndpoint::default() }
}

fn any(type_url: &str, message: &impl Message) -> Any {
    Any { type_url: type_url.to_owned(), value: message.encode_to_vec() }
}
