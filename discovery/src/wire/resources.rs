//! Encodes resources as `google.protobuf.Any`: clusters, load assignments and probe configurations.
//! Equal values result in equal bytes.

use std::collections::HashMap;

use bytes::Bytes;
use envoy_types::pb::envoy::config::cluster::v3::Cluster;
use envoy_types::pb::envoy::config::cluster::v3::cluster::{
    ClusterDiscoveryType, CommonLbConfig, DiscoveryType, EdsClusterConfig, LbPolicy,
};
use envoy_types::pb::envoy::config::core::v3::address::Address as AddressKind;
use envoy_types::pb::envoy::config::core::v3::config_source::ConfigSourceSpecifier;
use envoy_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use envoy_types::pb::envoy::config::core::v3::{
    Address, AggregatedConfigSource, ApiVersion, ConfigSource, Http2ProtocolOptions, Locality, Pipe,
    SocketAddress,
};
use envoy_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use envoy_types::pb::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints,
};
use envoy_types::pb::envoy::extensions::upstreams::http::v3::HttpProtocolOptions;
use envoy_types::pb::envoy::extensions::upstreams::http::v3::http_protocol_options::explicit_http_config::ProtocolConfig;
use envoy_types::pb::envoy::extensions::upstreams::http::v3::http_protocol_options::{
    ExplicitHttpConfig, UpstreamProtocolOptions,
};
use envoy_types::pb::envoy::r#type::v3::Percent;
use envoy_types::pb::google::protobuf::{Any, Duration, UInt32Value};
use prost::Message;
use serde_json::Value;
use xds::json::encode_struct;

use crate::message::TypeUrl;

const HTTP_OPTIONS: &str = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
const STRUCT: &str = "type.googleapis.com/google.protobuf.Struct";
/// Envoy's connect timeout to an endpoint in seconds.
const CONNECT_TIMEOUT: i64 = 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSpec<'a> {
    /// Name of the cluster and of its load assignment.
    pub name: &'a str,
    /// Whether Envoy uses HTTP/2 to the endpoints.
    pub http2: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndpointSpec {
    /// Formatted as `region/zone/subzone`, or empty.
    pub locality: String,
    /// An IP address, or `unix://` and a path.
    pub address: String,
    /// Ignored for a `unix://` address.
    pub port: u16,
    /// Load balancing weight, at least 1.
    pub weight: u32,
}

/// Encodes a cluster whose endpoints come by EDS over the same stream. The panic threshold is 0,
/// since panic routing would send traffic to unhealthy endpoints.
pub fn cluster(spec: &ClusterSpec) -> Bytes {
    let mut typed_extension_protocol_options = HashMap::new();
    if spec.http2 {
        let explicit = ExplicitHttpConfig {
            protocol_config: Some(ProtocolConfig::Http2ProtocolOptions(Http2ProtocolOptions::default())),
        };
        let options = HttpProtocolOptions {
            upstream_protocol_options: Some(UpstreamProtocolOptions::ExplicitHttpConfig(explicit)),
            ..HttpProtocolOptions::default()
        };
        let type_url = format!("type.googleapis.com/{HTTP_OPTIONS}");
        let options = Any { type_url, value: options.encode_to_vec() };
        typed_extension_protocol_options.insert(HTTP_OPTIONS.to_owned(), options);
    }
    let eds_config = ConfigSource {
        resource_api_version: ApiVersion::V3.into(),
        config_source_specifier: Some(ConfigSourceSpecifier::Ads(AggregatedConfigSource {})),
        ..ConfigSource::default()
    };
    let message = Cluster {
        name: spec.name.to_owned(),
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::Eds.into())),
        eds_cluster_config: Some(EdsClusterConfig {
            eds_config: Some(eds_config),
            service_name: spec.name.to_owned(),
        }),
        connect_timeout: Some(Duration { seconds: CONNECT_TIMEOUT, nanos: 0 }),
        lb_policy: LbPolicy::LeastRequest.into(),
        common_lb_config: Some(CommonLbConfig {
            healthy_panic_threshold: Some(Percent { value: 0.0 }),
            ..CommonLbConfig::default()
        }),
        typed_extension_protocol_options,
        ..Cluster::default()
    };
    any(TypeUrl::Cluster.as_str(), &message)
}

/// Encodes the endpoints of a cluster; `endpoints` must be sorted by locality.
pub fn assignment(name: &str, endpoints: &[EndpointSpec]) -> Bytes {
    let divisor = weight_divisor(endpoints);
    let localities = endpoints.chunk_by(|one, other| one.locality == other.locality);
    let endpoints = localities.map(|endpoints| locality_endpoints(endpoints, divisor)).collect();
    let message = ClusterLoadAssignment {
        cluster_name: name.to_owned(),
        endpoints,
        ..ClusterLoadAssignment::default()
    };
    any(TypeUrl::Endpoint.as_str(), &message)
}

/// Returns the number that all weights are divided by: Envoy rejects an assignment whose weights add
/// up to more than an unsigned number of 32 bits.
fn weight_divisor(endpoints: &[EndpointSpec]) -> u32 {
    let sum: u64 = endpoints.iter().map(|endpoint| u64::from(endpoint.weight)).sum();
    // A weight is at least 1 after the division, so half of the range remains for these.
    u32::try_from(sum / u64::from(u32::MAX / 2)).unwrap_or(u32::MAX).saturating_add(1)
}

/// Encodes the endpoints of one locality. The weight of the locality is that of its endpoints
/// together: with locality-weighted load balancing, which a static cluster may use, Envoy sends no
/// requests to a locality without a weight.
fn locality_endpoints(endpoints: &[EndpointSpec], divisor: u32) -> LocalityLbEndpoints {
    let weights = || endpoints.iter().map(|endpoint| (endpoint.weight / divisor).max(1));
    let sum = weights().fold(0_u32, u32::saturating_add);
    LocalityLbEndpoints {
        locality: endpoints.first().and_then(|endpoint| locality(&endpoint.locality)),
        lb_endpoints: endpoints.iter().zip(weights()).map(|(spec, weight)| endpoint(spec, weight)).collect(),
        load_balancing_weight: Some(UInt32Value { value: sum }),
        ..LocalityLbEndpoints::default()
    }
}

fn endpoint(spec: &EndpointSpec, weight: u32) -> LbEndpoint {
    let address = match spec.address.strip_prefix("unix://") {
        Some(path) => AddressKind::Pipe(Pipe { path: path.to_owned(), ..Pipe::default() }),
        None => AddressKind::SocketAddress(SocketAddress {
            address: spec.address.clone(),
            port_specifier: Some(PortSpecifier::PortValue(spec.port.into())),
            ..SocketAddress::default()
        }),
    };
    let endpoint = Endpoint { address: Some(Address { address: Some(address) }), ..Endpoint::default() };
    LbEndpoint {
        load_balancing_weight: Some(UInt32Value { value: weight }),
        host_identifier: Some(HostIdentifier::Endpoint(endpoint)),
        ..LbEndpoint::default()
    }
}

fn locality(text: &str) -> Option<Locality> {
    let mut parts = text.splitn(3, '/').map(str::to_owned);
    let mut next = || parts.next().unwrap_or_default();
    let locality = Locality { region: next(), zone: next(), sub_zone: next() };
    (!text.is_empty()).then_some(locality)
}

/// Encodes a probe configuration: JSON as `google.protobuf.Struct`.
pub fn probe_config(json: &Value) -> Bytes {
    xds::any(STRUCT, &encode_struct(json))
}

pub(super) fn any(type_url: &str, message: &impl Message) -> Bytes {
    xds::any(type_url, &message.encode_to_vec())
}
