//! Reads and writes the few fields of xDS messages that the proxy needs. All other fields, known or
//! not, are kept as they are.

mod fields;
mod request;
mod response;

pub(crate) use fields::fields;
pub use fields::{Malformed, put_bytes};
pub use request::Request;
pub use response::{DeltaResource, Resource, Response};

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
