//! Clusters and endpoints as a control plane sends them.

use envoy_types::pb::envoy::config::cluster::v3::Cluster;
use envoy_types::pb::envoy::config::cluster::v3::cluster::{
    ClusterDiscoveryType, DiscoveryType, EdsClusterConfig,
};
use envoy_types::pb::envoy::config::core::v3::config_source::ConfigSourceSpecifier;
use envoy_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use envoy_types::pb::envoy::config::core::v3::{
    Address, AggregatedConfigSource, ApiVersion, ConfigSource, Locality, SocketAddress, address,
};
use envoy_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use envoy_types::pb::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints,
};
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
    let source = ConfigSource {
        resource_api_version: ApiVersion::V3.into(),
        config_source_specifier: Some(ConfigSourceSpecifier::Ads(AggregatedConfigSource::default())),
        ..ConfigSource::default()
    };
    let cluster = |number| Cluster {
        name: cluster_name(number),
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::Eds.into())),
        eds_cluster_config: Some(EdsClusterConfig { eds_config: Some(source.clone()), ..Default::default() }),
        ..Cluster::default()
    };
    (0..count).map(|number| any(CLUSTER, &cluster(number))).collect()
}

/// Returns the endpoints of `clusters` clusters, `endpoints` for each; the name of a locality makes each
/// resource larger by `padding` bytes.
pub fn assignments(clusters: u8, endpoints: u8, padding: usize) -> Vec<Any> {
    let locality = Locality { region: "r".repeat(padding), ..Locality::default() };
    let assignment = |cluster| ClusterLoadAssignment {
        cluster_name: cluster_name(cluster),
        endpoints: vec![LocalityLbEndpoints {
            locality: Some(locality.clone()),
            lb_endpoints: (0..endpoints).map(|number| endpoint(cluster, number)).collect(),
            ..LocalityLbEndpoints::default()
        }],
        ..ClusterLoadAssignment::default()
    };
    (0..clusters).map(|cluster| any(CLUSTER_LOAD_ASSIGNMENT, &assignment(cluster))).collect()
}

fn endpoint(cluster: u8, number: u8) -> LbEndpoint {
    let socket = SocketAddress {
        address: format!("10.0.{cluster}.{number}"),
        port_specifier: Some(PortSpecifier::PortValue(8080)),
        ..SocketAddress::default()
    };
    let address = Address { address: Some(address::Address::SocketAddress(socket)) };
    let endpoint = Endpoint { address: Some(address), ..Endpoint::default() };
    LbEndpoint { host_identifier: Some(HostIdentifier::Endpoint(endpoint)), ..LbEndpoint::default() }
}

fn any(type_url: &str, message: &impl Message) -> Any {
    Any { type_url: type_url.to_owned(), value: message.encode_to_vec() }
}
