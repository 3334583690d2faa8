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
use hyper::body::Bytes;
use prost::Message;
use sha2::{Digest as _, Sha256};
use xds::any;
use xds::type_url::{CLUSTER, ENDPOINT, LISTENER};

/// Returns the name of a cluster, as Istio names those of a service.
pub fn cluster_name(number: u8) -> String {
    format!("outbound|80||service-{number}.shop.svc.cluster.local")
}

/// Returns clusters whose endpoints come by ADS.
pub fn clusters(count: u8) -> Vec<Bytes> {
    (0..count).map(|number| cluster(&cluster_name(number), Duration::default())).collect()
}

/// Returns a cluster whose endpoints come by ADS. Zero means Envoy's own connect timeout.
pub fn cluster(name: &str, connect_timeout: Duration) -> Bytes {
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
    any(CLUSTER, &cluster.encode_to_vec())
}

/// Returns a cluster that Envoy rejects: the load balancer does not fit the type.
pub fn invalid_cluster(name: &str) -> Bytes {
    let cluster = Cluster {
        name: name.to_owned(),
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::OriginalDst.into())),
        lb_policy: LbPolicy::RingHash.into(),
        ..Cluster::default()
    };
    any(CLUSTER, &cluster.encode_to_vec())
}

/// Returns the endpoints of a cluster: one, at this address.
pub fn assignment(cluster: &str, address: SocketAddr) -> Bytes {
    let endpoints = vec![LocalityLbEndpoints {
        lb_endpoints: vec![endpoint(socket_address(address))],
        ..LocalityLbEndpoints::default()
    }];
    let assignment =
        ClusterLoadAssignment { cluster_name: cluster.to_owned(), endpoints, ..Default::default() };
    any(ENDPOINT, &assignment.encode_to_vec())
}

/// Returns the endpoints of a cluster: none, but the name of a locality has this size.
pub fn assignment_of_size(cluster: &str, size: usize) -> Bytes {
    // The same text each time, which cannot be compressed to a small one.
    let bytes = (0_u32..).flat_map(|number| Sha256::digest(number.to_le_bytes()).to_vec());
    let region = bytes.take(size / 2).map(|byte| format!("{byte:02x}")).collect();
    let locality = Locality { region, ..Locality::default() };
    let endpoints = vec![LocalityLbEndpoints { locality: Some(locality), ..Default::default() }];
    let assignment =
        ClusterLoadAssignment { cluster_name: cluster.to_owned(), endpoints, ..Default::default() };
    any(ENDPOINT, &assignment.encode_to_vec())
}

/// Returns a listener that sends a text to each connection.
pub fn listener(name: &str, address: SocketAddr, text: &str) -> Bytes {
    let source =
        DataSource { specifier: Some(Specifier::InlineString(text.to_owned())), ..Default::default() };
    let config = Any {
        type_url: "type.googleapis.com/envoy.extensions.filters.network.direct_response.v3.Config".to_owned(),
        value: DirectResponse { response: Some(source) }.encode_to_vec(),
    };
    let filter = Filter { name: "text".to_owned(), config_type: Some(ConfigType::TypedConfig(config)) };
    let listener = Listener {
        name: name.to_owned(),
        address: Some(socket_address(address)),
        filter_chains: vec![FilterChain { filters: vec![filter], ..FilterChain::default() }],
        ..Listener::default()
    };
    any(LISTENER, &listener.encode_to_vec())
}

/// Returns the endpoints of `clusters` clusters, `endpoints` for each; the name of a locality makes each
/// resource larger by `padding` bytes.
pub fn assignments(clusters: u8, endpoints: u8, padding: usize) -> Vec<Bytes> {
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
    (0..clusters).map(|cluster| any(ENDPOINT, &assignment(cluster).encode_to_vec())).collect()
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
