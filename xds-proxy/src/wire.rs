//! Reads and writes the few fields of xDS messages that the proxy needs. All other fields, known or
//! not, are kept as they are.

mod fields;
mod request;
mod response;

pub use fields::{Malformed, put_bytes};
pub(crate) use fields::{bytes_size, fields, put_key};
pub use request::Request;
pub use response::{DeltaResource, Resource, Response};

/// Maximum number of resources and names of one message that are read. More of them would take more
/// memory than the message itself.
pub const ITEM_LIMIT: usize = 100_000;
/// Maximum length of a version, a nonce or a type URL of the control plane, in bytes. The proxy keeps
/// them for each type.
const TEXT_LIMIT: usize = 64 << 10;

/// The two variants of the xDS protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// State of the world.
    Sotw,
    /// The incremental variant of xDS.
    Delta,
}

/// Type URLs of which a response in state of the world contains every resource.
pub const CLUSTER: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
pub const LISTENER: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
/// Type URL of certificates and keys, which are never stored.
pub const SECRET: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";
/// Type URL of the wrapper that carries a name, in state of the world.
const RESOURCE: &str = "type.googleapis.com/envoy.service.discovery.v3.Resource";

/// Returns true if a response in state of the world contains every resource of this type.
pub fn is_complete(type_url: &str) -> bool {
    type_url == CLUSTER || type_url == LISTENER
}

#[cfg(test)]
mod tests;
