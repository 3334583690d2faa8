//! Reads and writes the messages of the xDS protocol, in both variants. Only the fields that the agent
//! or the discovery server needs are decoded; all other fields, known or not, are kept as they are.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod fields;
pub mod health;
pub mod json;
mod node;
mod request;
mod response;
pub mod type_url;

pub use fields::{Malformed, bytes_size, fields, put_bytes, put_integer, put_key};
pub use node::Node;
pub use request::Request;
pub use response::{Resource, ResourceRef, Response, ResponseHead, any, parse_any};

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

impl Variant {
    /// Returns the variant of a stream with this path.
    pub fn of_path(path: &str) -> Option<Self> {
        [Self::Sotw, Self::Delta].into_iter().find(|variant| variant.path() == path)
    }

    /// Returns the path of the gRPC method.
    pub fn path(self) -> &'static str {
        match self {
            Self::Sotw => "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
            Self::Delta => "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
        }
    }
}

#[cfg(test)]
mod tests;
