//! Decoded xDS requests and responses to be encoded. `crate::wire` converts them from and to bytes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use workload_health::Report;
use workload_health::text::printable;
pub use xds::Variant;
use xds::type_url;

use crate::entries::Node;

/// The resource types that this server supports. Any other type is [`TypeUrl::Other`], and its
/// response is an empty set, as is that of listeners and routes without `--outbound-listeners`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TypeUrl {
    /// Clusters (CDS).
    Cluster,
    /// Endpoint assignments (EDS).
    Endpoint,
    /// Listeners (LDS).
    Listener,
    /// Route configurations (RDS).
    Route,
    /// Session settings and probe, sent to app-health agents only.
    Probe,
    /// Health reports from agents and their acknowledgements.
    Health,
    /// A type URL that is not served, cut to 256 printable bytes.
    Other(String),
}

impl TypeUrl {
    /// Parses a type URL. Every text is accepted.
    pub fn parse(text: &str) -> Self {
        match text {
            type_url::CLUSTER => Self::Cluster,
            type_url::ENDPOINT => Self::Endpoint,
            type_url::LISTENER => Self::Listener,
            type_url::ROUTE => Self::Route,
            type_url::PROBE => Self::Probe,
            type_url::HEALTH_INFORMATION => Self::Health,
            other => Self::Other(printable(other)),
        }
    }

    /// Returns the type URL.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Cluster => type_url::CLUSTER,
            Self::Endpoint => type_url::ENDPOINT,
            Self::Listener => type_url::LISTENER,
            Self::Route => type_url::ROUTE,
            Self::Probe => type_url::PROBE,
            Self::Health => type_url::HEALTH_INFORMATION,
            Self::Other(text) => text,
        }
    }

    /// Returns true for clusters and listeners. A client may subscribe to all of them without a name,
    /// and a state-of-the-world response contains all of them, so that a missing one is deleted.
    pub fn has_full_responses(&self) -> bool {
        matches!(self, Self::Cluster | Self::Listener)
    }

    /// Returns a short name for metrics and debug output.
    pub fn short_name(&self) -> &'static str {
        match self {
            Self::Cluster => "CDS",
            Self::Endpoint => "EDS",
            Self::Listener => "LDS",
            Self::Route => "RDS",
            Self::Probe => "probe",
            Self::Health => "health",
            Self::Other(_) => "other",
        }
    }
}

/// A discovery request. Texts of the peer that are logged or shown are already cut to 256 printable
/// bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Present at least in the first request of a stream.
    pub node: Option<Box<Node>>,
    pub type_url: TypeUrl,
    /// Nonce of the response that the request acknowledges or rejects; empty if it does neither.
    pub nonce: String,
    /// The `error_detail` message: why a response is rejected, or the text of a health report.
    pub error: Option<String>,
    pub subscription: ResourceSubscription,
    /// Present if the type is [`TypeUrl::Health`].
    pub report: Option<Report>,
}

/// The resources that a request subscribes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceSubscription {
    /// Subscription of the state-of-the-world variant.
    Sotw {
        /// Last accepted version; empty if there is none.
        version: String,
        /// All subscribed names. An empty list may be a wildcard subscription.
        names: Vec<String>,
    },
    /// Subscription change of the incremental variant.
    Delta {
        /// Names to add; `*` subscribes to all resources.
        subscribe: Vec<String>,
        unsubscribe: Vec<String>,
        /// `initial_resource_versions`: what the client has when it first requests the type.
        initial: BTreeMap<String, String>,
    },
}

/// Version of a resource: a hash of its content, the same on every server. The version of an
/// assignment also contains its number of endpoints, as in `a1b2c3d4e5f60718-3`, so that a client
/// that reconnects tells the server how many endpoints it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version {
    pub hash: u64,
    /// Number of endpoints of an assignment.
    pub endpoints: Option<u32>,
}

impl Version {
    /// Parses a version sent by a client. Returns `None` if the format is not that of this server.
    pub fn parse(text: &str) -> Option<Self> {
        let (hash, endpoints) = match text.split_once('-') {
            Some((hash, endpoints)) => (hash, Some(endpoints.parse().ok()?)),
            None => (text, None),
        };
        Some(Self { hash: u64::from_str_radix(hash, 16).ok()?, endpoints })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{:016x}", self.hash)?;
        self.endpoints.map_or(Ok(()), |endpoints| write!(formatter, "-{endpoints}"))
    }
}

/// A cluster, an assignment, a listener or a route configuration, encoded once for all streams.
#[derive(Debug, PartialEq, Eq)]
pub struct Resource {
    pub name: Arc<str>,
    pub version: Version,
    /// The encoded `google.protobuf.Any`.
    pub any: Bytes,
}

/// A discovery response to be encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    pub type_url: TypeUrl,
    pub version: String,
    /// Nonce that is unique on the stream.
    pub nonce: String,
    pub resources: Vec<Arc<Resource>>,
    /// Names of deleted resources (incremental variant only).
    pub removed: Vec<Arc<str>>,
}
