//! Decodes and encodes Envoy's protobuf messages; only this module and its submodules use these
//! types. Requests are decoded in parts: fields that are not needed or too large are never unpacked
//! in memory.

mod node;
mod outbound;
mod resources;

use std::collections::{BTreeMap, HashMap};

use bytes::{BufMut, Bytes};
use envoy_types::pb::google::rpc::Status;
use prost::Message;

use crate::entries::Report;
use crate::message::{Request, Resource, ResourceSubscription, Response, TypeUrl, Variant};
use workload_health::health_report::printable;

pub use outbound::{HostSpec, http_listener, route, tcp_listener};
pub use resources::{ClusterSpec, EndpointSpec, assignment, cluster, probe_config};

/// Maximum size of a message in bytes.
pub const MESSAGE_LIMIT: usize = 4 << 20;
/// Maximum size of `node.metadata` in bytes.
pub const METADATA_LIMIT: usize = 64 << 10;
/// Maximum number of names in one request.
pub const NAMES_LIMIT: usize = 1 << 16;
/// Maximum number of names without a resource that a stream may request of a type.
pub const UNKNOWN_NAMES_LIMIT: usize = 4096;
/// Message of an unhealthy report without text: `error_detail` marks a report as unhealthy, and its
/// absence as healthy.
const DEFAULT_UNHEALTHY_MESSAGE: &str = "no text";

/// A request that is rejected, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The bytes are not a protobuf message of this type.
    #[error("request: not a valid message: {0}")]
    Message(String),
    /// A part exceeds its limit: its name, and the limit.
    #[error("{0}: more than {1}")]
    TooLarge(&'static str, &'static str),
    /// A field of the node's metadata is invalid: its name, and why.
    #[error("node.metadata.{0}")]
    Metadata(String),
}

/// `envoy.service.discovery.v3.DiscoveryRequest` with its node not decoded.
#[derive(Clone, PartialEq, Message)]
struct SotwRequest {
    #[prost(string, tag = "1")]
    version_info: String,
    #[prost(bytes = "bytes", optional, tag = "2")]
    node: Option<Bytes>,
    #[prost(bytes = "bytes", repeated, tag = "3")]
    resource_names: Vec<Bytes>,
    #[prost(string, tag = "4")]
    type_url: String,
    #[prost(string, tag = "5")]
    response_nonce: String,
    #[prost(message, optional, tag = "6")]
    error_detail: Option<Status>,
}

/// `envoy.service.discovery.v3.DeltaDiscoveryRequest` with its node not decoded.
#[derive(Clone, PartialEq, Message)]
struct DeltaRequest {
    #[prost(bytes = "bytes", optional, tag = "1")]
    node: Option<Bytes>,
    #[prost(string, tag = "2")]
    type_url: String,
    #[prost(bytes = "bytes", repeated, tag = "3")]
    subscribe: Vec<Bytes>,
    #[prost(bytes = "bytes", repeated, tag = "4")]
    unsubscribe: Vec<Bytes>,
    #[prost(map = "string, string", tag = "5")]
    initial_resource_versions: HashMap<String, String>,
    #[prost(string, tag = "6")]
    response_nonce: String,
    #[prost(message, optional, tag = "7")]
    error_detail: Option<Status>,
}

/// `envoy.service.discovery.v3.DiscoveryResponse`; each resource is an encoded `Any`.
#[derive(Clone, PartialEq, Message)]
struct SotwResponse {
    #[prost(string, tag = "1")]
    version_info: String,
    #[prost(bytes = "bytes", repeated, tag = "2")]
    resources: Vec<Bytes>,
    #[prost(string, tag = "4")]
    type_url: String,
    #[prost(string, tag = "5")]
    nonce: String,
}

/// `envoy.service.discovery.v3.DeltaDiscoveryResponse`.
#[derive(Clone, PartialEq, Message)]
struct DeltaResponse {
    #[prost(string, tag = "1")]
    system_version_info: String,
    #[prost(message, repeated, tag = "2")]
    resources: Vec<DeltaResource>,
    #[prost(string, tag = "4")]
    type_url: String,
    #[prost(string, tag = "5")]
    nonce: String,
    #[prost(string, repeated, tag = "6")]
    removed_resources: Vec<String>,
}

/// `envoy.service.discovery.v3.Resource` with an encoded `Any`.
#[derive(Clone, PartialEq, Message)]
struct DeltaResource {
    #[prost(string, tag = "1")]
    version: String,
    #[prost(bytes = "bytes", tag = "2")]
    resource: Bytes,
    #[prost(string, tag = "3")]
    name: String,
}

/// Decodes a request.
///
/// # Errors
/// Returns an error if the request is malformed; the stream then ends with `INVALID_ARGUMENT`.
pub fn decode(bytes: Bytes, variant: Variant) -> Result<Request, Malformed> {
    let broken = |error: prost::DecodeError| Malformed::Message(printable(&error.to_string()));
    let (node, type_url, nonce, error, subscription) = match variant {
        Variant::Sotw => {
            let SotwRequest { version_info, node, resource_names, type_url, response_nonce, error_detail } =
                SotwRequest::decode(bytes).map_err(broken)?;
            let subscription =
                ResourceSubscription::Sotw { version: version_info, names: names(resource_names)? };
            (node, type_url, response_nonce, error_detail, subscription)
        }
        Variant::Delta => {
            let request = DeltaRequest::decode(bytes).map_err(broken)?;
            let initial = request.initial_resource_versions;
            if initial.len() > NAMES_LIMIT {
                return Err(Malformed::TooLarge("initial_resource_versions", "65536 names"));
            }
            let subscription = ResourceSubscription::Delta {
                subscribe: names(request.subscribe)?,
                unsubscribe: names(request.unsubscribe)?,
                initial: initial.into_iter().collect::<BTreeMap<_, _>>(),
            };
            (request.node, request.type_url, request.response_nonce, request.error_detail, subscription)
        }
    };
    let type_url = TypeUrl::parse(&type_url);
    let error = error.map(|status| match status.message.as_str() {
        "" => DEFAULT_UNHEALTHY_MESSAGE.to_owned(),
        text => printable(text),
    });
    let (node, report) = match node {
        None => (None, None),
        Some(bytes) => node::decode(bytes)?,
    };
    let report = (type_url == TypeUrl::Health).then(|| match (report, &error) {
        (Some(report), _) => Report::AppHealth(report),
        (None, None) => Report::Istio { healthy: true, message: String::new() },
        (None, Some(text)) => Report::Istio { healthy: false, message: text.clone() },
    });
    Ok(Request { node: node.map(Box::new), type_url, nonce, error, subscription, report })
}

fn names(names: Vec<Bytes>) -> Result<Vec<String>, Malformed> {
    if names.len() > NAMES_LIMIT {
        return Err(Malformed::TooLarge("resource_names", "65536 names"));
    }
    let text = |name: Bytes| {
        let name = std::str::from_utf8(&name).map_err(|error| Malformed::Message(error.to_string()))?;
        Ok(name.to_owned())
    };
    names.into_iter().map(text).collect()
}

/// Encodes a response; the encoded resources are copied.
pub fn encode(response: Response, variant: Variant, buffer: &mut impl BufMut) {
    let Response { type_url, version, nonce, resources, removed } = response;
    let type_url = type_url.as_str().to_owned();
    let written = match variant {
        Variant::Sotw => {
            let resources = resources.iter().map(|resource| resource.any.clone()).collect();
            SotwResponse { version_info: version, resources, type_url, nonce }.encode(buffer)
        }
        Variant::Delta => {
            let resource = |resource: &std::sync::Arc<Resource>| DeltaResource {
                version: resource.version.to_string(),
                resource: resource.any.clone(),
                name: resource.name.to_string(),
            };
            let resources = resources.iter().map(resource).collect();
            let removed_resources = removed.iter().map(ToString::to_string).collect();
            let response =
                DeltaResponse { system_version_info: version, resources, type_url, nonce, removed_resources };
            response.encode(buffer)
        }
    };
    written.expect("the buffer grows");
}

#[cfg(test)]
mod tests;
