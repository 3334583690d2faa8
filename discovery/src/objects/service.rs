//! What of a ServiceEntry makes clusters and endpoints.

use std::collections::BTreeMap;

use super::{Key, Spec};

/// A ServiceEntry with `resolution: STATIC`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// The object's.
    pub key: Key,
    /// At least one.
    pub hosts: Vec<String>,
    /// In the object's order, no number and no name twice.
    pub ports: Vec<Port>,
    /// Where its endpoints come from.
    pub source: Source,
    /// Whose Envoys see it.
    pub export_to: ExportTo,
    /// The annotation `app-health.io/last-endpoint`; absent: the server's flag.
    pub last_endpoint: Option<LastEndpoint>,
}

/// A port of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// 1 to 65535.
    pub number: u16,
    /// The key of `Spec::ports`.
    pub name: String,
    /// What Envoy speaks.
    pub protocol: Protocol,
    /// The endpoint's port where the entry names none.
    pub target_port: Option<u16>,
}

/// `HTTP2` and `GRPC` make a cluster of HTTP/2; the rest makes none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// `HTTP`.
    Http,
    /// `HTTPS`.
    Https,
    /// `HTTP2`.
    Http2,
    /// `GRPC`.
    Grpc,
    /// `TCP`, and what is not said.
    Tcp,
    /// `TLS`.
    Tls,
    /// `MONGO`.
    Mongo,
}

/// Where endpoints come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Entries of the same namespace that have all these labels; never empty.
    Selector(BTreeMap<String, String>),
    /// Written in the object.
    Inline(Vec<Spec>),
}

/// `exportTo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportTo {
    /// Absent or `*`.
    All,
    /// `.`: clients of its own namespace.
    OwnNamespace,
}

/// What becomes of the last endpoint of a service port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastEndpoint {
    /// The set may become empty.
    Remove,
    /// The one that became unserved last stays.
    Keep,
}
