//! Converts requests and responses from and to the messages of xDS. Requests are decoded in parts:
//! fields that are not needed or too large are never unpacked in memory. Only the submodules for
//! resources use Envoy's protobuf types.

mod node;
mod outbound;
mod resources;

use bytes::{Bytes, BytesMut};
use workload_health::Report;
use workload_health::text::printable;
use xds::{ResourceRef, ResponseHead};

use crate::message::{Request, ResourceSubscription, Response, TypeUrl, Variant};

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
    #[error("request: {0}")]
    Message(#[from] xds::Malformed),
    /// A part exceeds its limit: its name, and the limit.
    #[error("{0}: more than {1}")]
    TooLarge(&'static str, &'static str),
    /// A field of the node's metadata is invalid: its name, and why.
    #[error("node.metadata.{0}")]
    Metadata(String),
}

/// Decodes a request.
///
/// # Errors
/// Returns an error if the request is malformed; the stream then ends with `INVALID_ARGUMENT`.
pub fn decode(bytes: Bytes, variant: Variant) -> Result<Request, Malformed> {
    // Each of the lists has this limit, so all of them together have no more.
    let request = xds::Request::parse_limited(&bytes, variant, 3 * NAMES_LIMIT)?;
    let error = request.error_text()?;
    let xds::Request { type_url, version, nonce, node, subscribe, unsubscribe, initial_versions, .. } =
        request;
    let lists = [
        ("resource_names", subscribe.len().max(unsubscribe.len())),
        ("initial_resource_versions", initial_versions.len()),
    ];
    if let Some((name, _)) = lists.into_iter().find(|(_, length)| *length > NAMES_LIMIT || request.is_cut) {
        return Err(Malformed::TooLarge(name, "65536 names"));
    }
    let subscription = match variant {
        Variant::Sotw => ResourceSubscription::Sotw { version, names: subscribe },
        Variant::Delta => {
            let initial = initial_versions.into_iter().collect();
            ResourceSubscription::Delta { subscribe, unsubscribe, initial }
        }
    };
    let type_url = TypeUrl::parse(&type_url);
    let error = error.map(|text| match text.as_str() {
        "" => DEFAULT_UNHEALTHY_MESSAGE.to_owned(),
        text => printable(text),
    });
    let (node, report) = match node {
        None => (None, None),
        Some(bytes) => node::decode(&bytes)?,
    };
    let report = (type_url == TypeUrl::Health).then(|| match (report, &error) {
        (Some(report), _) => Report::AppHealth(report),
        (None, None) => Report::Istio { healthy: true, message: String::new() },
        (None, Some(text)) => Report::Istio { healthy: false, message: text.clone() },
    });
    Ok(Request { node: node.map(Box::new), type_url, nonce, error, subscription, report })
}

/// Appends an encoded response; the encoded resources are copied.
pub fn encode(response: Response, variant: Variant, buffer: &mut BytesMut) {
    let Response { type_url, version, nonce, resources, removed } = response;
    let versions: Vec<String> = resources.iter().map(|resource| resource.version.to_string()).collect();
    let resources = resources.iter().zip(&versions).map(|(resource, version)| ResourceRef {
        name: &resource.name,
        version,
        any: &resource.any,
    });
    let head = ResponseHead { type_url: type_url.as_str(), version: &version, nonce: &nonce };
    head.encode_to(variant, resources, removed.iter().map(AsRef::as_ref), buffer);
}

#[cfg(test)]
mod tests;
