//! What crosses an ADS stream, as values: requests that were read, answers that will be written. The bytes of both are `crate::xds`'.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::entries::{Node, Report};

/// The types that mean something here. Everything else is [`TypeUrl::Other`], and is never answered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TypeUrl {
    /// CDS.
    Cluster,
    /// EDS.
    Endpoint,
    /// Our hello to our agent.
    Probe,
    /// Health of a workload, and its acknowledgement.
    Health,
    /// As it came, at most 256 printable bytes.
    Other(String),
}

impl TypeUrl {
    const CLUSTER: &'static str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
    const ENDPOINT: &'static str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";

    /// Any text is a type.
    pub fn parse(text: &str) -> Self {
        match text {
            Self::CLUSTER => Self::Cluster,
            Self::ENDPOINT => Self::Endpoint,
            workload_health::health_report::PROBE_TYPE => Self::Probe,
            workload_health::health_report::HEALTH_INFORMATION => Self::Health,
            other => Self::Other(workload_health::health_report::printable(other)),
        }
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Cluster => Self::CLUSTER,
            Self::Endpoint => Self::ENDPOINT,
            Self::Probe => workload_health::health_report::PROBE_TYPE,
            Self::Health => workload_health::health_report::HEALTH_INFORMATION,
            Self::Other(text) => text,
        }
    }

    /// For metrics and views: one of five words.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Cluster => "CDS",
            Self::Endpoint => "EDS",
            Self::Probe => "probe",
            Self::Health => "health",
            Self::Other(_) => "other",
        }
    }
}

/// The two variants of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// State of the world: `StreamAggregatedResources`.
    Sotw,
    /// Incremental: `DeltaAggregatedResources`.
    Delta,
}

/// A request. Texts of the peer that are shown are cut to 256 printable bytes already.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// On the first request of a stream at least.
    pub node: Option<Box<Node>>,
    /// What it is about.
    pub type_url: TypeUrl,
    /// Of the answer that it acknowledges or refuses; empty: of none.
    pub nonce: String,
    /// Why the answer is refused; a report's text.
    pub error: Option<String>,
    /// What is asked for.
    pub ask: Ask,
    /// With [`TypeUrl::Health`].
    pub report: Option<Report>,
}

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// State of the world.
    Sotw {
        /// Last accepted version; empty: none.
        version: String,
        /// All names; none may mean everything.
        names: Vec<String>,
    },
    /// Incremental.
    Delta {
        /// More names; `*` is everything.
        subscribe: Vec<String>,
        /// Fewer names.
        unsubscribe: Vec<String>,
        /// First request of a type: what the client has, and in which version.
        initial: BTreeMap<String, String>,
    },
}

/// The version of a resource: a hash of its content, equal wherever the content is; of an assignment also how many endpoints it has, so that
/// a client that comes back tells it (`a1b2c3d4e5f60718-3`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version {
    /// Of the content.
    pub hash: u64,
    /// Of an assignment.
    pub endpoints: Option<u32>,
}

impl Version {
    /// Of text that a client sent; anything may come.
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

/// A cluster or an assignment, encoded once for all who get it.
#[derive(Debug, PartialEq, Eq)]
pub struct Resource {
    /// As it is subscribed to.
    pub name: Arc<str>,
    /// Of the content.
    pub version: Version,
    /// A `google.protobuf.Any`, encoded.
    pub any: Bytes,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// What it is about.
    pub type_url: TypeUrl,
    /// `version_info`, or `system_version_info`.
    pub version: String,
    /// Unique on its stream.
    pub nonce: String,
    /// What it brings.
    pub resources: Vec<Arc<Resource>>,
    /// Incremental: what there is no more.
    pub removed: Vec<Arc<str>>,
}
