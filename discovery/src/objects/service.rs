//! The parts of a ServiceEntry that determine clusters and endpoints.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Key, Spec};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    pub key: Key,
    /// Host names; at least one.
    pub hosts: Vec<String>,
    /// Ports in the order of the object, with unique numbers and names.
    pub ports: Vec<Port>,
    pub source: Source,
    pub export_to: ExportTo,
    /// `metadata.creationTimestamp`, which sorts as text; `None` in a file without it.
    pub created: Option<String>,
    /// The annotation `app-health.io/last-endpoint`; `None` selects the policy of the flag
    /// `--last-endpoint`.
    pub last_endpoint: Option<LastEndpoint>,
}

impl Service {
    /// Returns what services are sorted by if only one can have something: the oldest takes precedence,
    /// so that nobody can take a host or port from a service that exists.
    pub fn precedence(&self) -> impl Ord + '_ {
        (self.created.is_none(), self.created.as_deref(), &self.key)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Port number from 1 to 65535.
    pub number: u16,
    /// Port name, which is the key in `Spec::ports`.
    pub name: String,
    pub protocol: Protocol,
    /// Port of the endpoint if the entry has none for this name.
    pub target_port: Option<u16>,
}

/// Protocol of a port. `Http2` and `Grpc` give a cluster with HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Http,
    Https,
    Http2,
    /// Either `GRPC` or `GRPC-WEB`.
    Grpc,
    /// `TCP`, which is also the default.
    Tcp,
    Tls,
    Mongo,
}

impl Protocol {
    /// Returns true if Envoy can route single requests of the protocol by their host.
    pub fn is_http(self) -> bool {
        matches!(self, Self::Http | Self::Http2 | Self::Grpc)
    }

    /// Returns the name of the protocol in a ServiceEntry.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "HTTP",
            Self::Https => "HTTPS",
            Self::Http2 => "HTTP2",
            Self::Grpc => "GRPC",
            Self::Tcp => "TCP",
            Self::Tls => "TLS",
            Self::Mongo => "MONGO",
        }
    }
}

/// Source of the endpoints of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Entries in the same namespace with all of these labels, which are never empty.
    Selector(BTreeMap<String, String>),
    /// Endpoints inline in the ServiceEntry.
    Inline(Vec<Arc<Spec>>),
}

/// The values of `exportTo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportTo {
    /// `*` or absent.
    All,
    /// `.`: only clients in the namespace of the service.
    OwnNamespace,
}

/// Policy for the last endpoint of a service port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastEndpoint {
    /// The endpoint is removed, so the set may become empty.
    Remove,
    /// The entry that became unhealthy last is kept.
    Keep,
}
