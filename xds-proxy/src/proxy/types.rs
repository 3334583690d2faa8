//! Inputs and effects of the proxy, and its view.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use workload_health::reporter::{Attempt, HealthStatus, HelloId};
use xds::{Node, Variant};

use super::storage::Write;
use crate::last_good::LastGood;

/// Settings of the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxySettings {
    /// Identity of the node, which the stored configuration belongs to.
    pub identity: String,
    /// Maximum age of a last good configuration that is served; `None` if it is never served or
    /// stored.
    pub max_age: Option<Duration>,
    /// Variant of a stream that Envoy does not use.
    pub variant: Variant,
    /// True if an Envoy may open streams.
    pub serves_envoy: bool,
    /// Type URLs that the agent itself subscribes to, beside Envoy.
    pub own_types: Vec<String>,
    /// True if Envoy must not get WebAssembly from other machines, because only Istio's agent could load it.
    pub refuses_remote_wasm: bool,
}

/// A resource of one of the agent's own types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnResource {
    pub type_url: String,
    pub version: String,
    pub nonce: String,
    /// The number of the stream on which it arrived.
    pub stream: u64,
    /// The encoded `google.protobuf.Any`.
    pub any: Bytes,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Envoy has opened a stream, which replaces an earlier one.
    EnvoyOpened(Variant),
    /// An encoded request of Envoy.
    EnvoyRequest(Bytes),
    EnvoyClosed,
    /// The requested upstream stream is open.
    UpstreamOpened {
        /// The node of the agent, whose fields override those of Envoy's node.
        node: Box<Node>,
        /// Name of the server.
        server: String,
    },
    /// An encoded response of the control plane.
    UpstreamResponse(Bytes),
    /// The requested upstream stream could not be opened, or the open one has ended.
    UpstreamClosed {
        /// True if the server rejected this client.
        is_rejected: bool,
        reason: String,
    },
    /// The health status has changed, at least in part.
    Health(HealthStatus),
    /// The probe of a [`HealthEvent::ValidateProbe`] was accepted or rejected.
    ProbeValidated {
        hello: HelloId,
        result: Result<(), String>,
    },
    /// The certificate files have changed, and the new ones are usable.
    FilesChanged,
    /// The resource of an [`Effect::Own`] is in use, or refused with this text.
    OwnChecked {
        resource: OwnResource,
        result: Result<(), String>,
    },
    /// The requested write has ended; the error is its cause. `packed` is the configuration of this
    /// write, all of it compressed; it is empty if only the age was written.
    Stored {
        packed: LastGood,
        result: Result<(), String>,
    },
    /// The agent terminates: the final health report follows.
    Terminating,
    Tick,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Open an upstream stream; the result is an [`Input::UpstreamOpened`] or
    /// [`Input::UpstreamClosed`].
    Connect,
    /// Close the upstream stream, or abort the attempt to open it.
    CloseUpstream,
    /// Close the upstream stream because of this fault of the control plane.
    AbortUpstream(&'static str),
    SendUpstream(Bytes),
    /// Close the client's half of the upstream stream.
    HalfCloseUpstream,
    /// Use this resource; the result is an [`Input::OwnChecked`].
    Own(OwnResource),
    /// Send both parts to Envoy as one message.
    SendEnvoy(Bytes, Bytes),
    CloseEnvoy(&'static str),
    /// Store [`super::Proxy::last_good`], or only its age; the result is an [`Input::Stored`].
    Store {
        write: Write,
        /// Time since a control plane confirmed the configuration.
        age: Duration,
    },
    Health(HealthEvent),
    Event(Event),
}

/// What happens to the health reports.
#[derive(Debug, Clone, PartialEq)]
pub enum HealthEvent {
    /// Reports may be sent on the current upstream stream.
    Opened,
    /// A report was sent.
    Sent(Attempt),
    /// The server stored the report with this version, `<epoch>/<generation>`.
    Acknowledged(String),
    /// The server has sent a hello message with this session for the first time on a stream.
    Session(u64),
    /// A hello message is invalid.
    InvalidHello(String),
    /// There is no probe, and the server has sent none, as istiod never does. It serves the workload
    /// whatever its health is.
    NothingToReport,
    /// Validate a pushed probe; the result is an [`Input::ProbeValidated`].
    ValidateProbe {
        hello: HelloId,
        /// `None` if the server has no probe for this workload.
        probe: Option<Value>,
    },
    /// Reports can no longer be sent on the stream.
    Closed,
    /// The final report is delivered or has timed out.
    Done,
}

/// Something that an operator wants to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Envoy rejected a response with this text.
    Nack { type_url: String, text: String },
    /// The agent rejected a response with this text.
    Refused { type_url: String, text: String },
    /// Envoy received resources of the last good configuration.
    ServedFromCache { type_url: String, resources: usize, age: Duration },
    /// The control plane has confirmed or replaced the configuration that came from the cache.
    NoLongerStale,
    /// The last good configuration is too old to be served.
    Expired { age: Duration },
    /// The control plane sent a type that Envoy does not subscribe to.
    NotSubscribed { type_url: String },
    /// The server has ended streams after health reports, and gets none for this time.
    HealthRefused { server: String, pause: Duration },
    /// A type is not stored, because it exceeds a limit.
    NotStored { type_url: String, reason: &'static str },
    /// The configuration could not be stored.
    StoreFailed { error: String },
    /// The configuration was stored after a failure.
    StoredAgain,
}

/// Counts the age of the last good configuration.
#[derive(Debug, Clone, Copy)]
pub(super) struct Age {
    /// Age at `at`; `None` if there is no configuration.
    age: Option<Duration>,
    at: Duration,
}

impl Age {
    pub(super) fn new(age: Option<Duration>) -> Self {
        Self { age, at: Duration::ZERO }
    }

    pub(super) fn confirm(&mut self, now: Duration) {
        *self = Self { age: Some(Duration::ZERO), at: now };
    }

    pub(super) fn at(self, now: Duration) -> Option<Duration> {
        Some(self.age?.saturating_add(now.saturating_sub(self.at)))
    }
}

/// Counters of one resource type, over all streams.
#[derive(Debug, Clone, Default)]
pub(super) struct Counters {
    pub(super) responses: u64,
    pub(super) bytes: u64,
    pub(super) acks: u64,
    pub(super) nacks: u64,
    pub(super) unchanged: u64,
    pub(super) from_cache: u64,
    pub(super) last_nack: Option<(String, Duration)>,
    /// True once an event has said that the type is not stored.
    pub(super) is_limit_logged: bool,
    pub(super) last_response: Option<Duration>,
}

/// The state of the proxy, for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyView {
    /// Variant of Envoy's stream; `None` if Envoy is not connected.
    pub envoy: Option<Variant>,
    /// How long the upstream stream has been open.
    pub connected: Option<Duration>,
    /// Number of upstream streams so far.
    pub streams: u64,
    /// Why the last upstream stream or attempt ended.
    pub error: Option<String>,
    /// Time since a control plane confirmed the last good configuration.
    pub age: Option<Duration>,
    /// Age of the configuration that Envoy received from the cache; `None` if it received none, or
    /// the control plane has answered since.
    pub stale: Option<Duration>,
    /// True if the upstream stream carries no health reports, because the server ends streams that do.
    pub is_health_refused: bool,
    /// Responses of types that Envoy does not subscribe to.
    pub not_subscribed: u64,
    /// Number of types that are not stored, because they exceed a limit.
    pub not_stored: usize,
    /// Why the last write of the configuration failed.
    pub store_error: Option<String>,
    pub types: Vec<TypeView>,
}

/// One resource type in the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeView {
    pub type_url: String,
    /// Number of names that Envoy subscribes to.
    pub names: usize,
    /// Version that Envoy accepted last.
    pub version: String,
    /// Resources of the last good configuration, and their size in bytes.
    pub resources: usize,
    pub size: usize,
    /// Why the resources are not stored.
    pub not_stored: Option<&'static str>,
    pub in_flight: usize,
    pub is_stale: bool,
    pub responses: u64,
    pub bytes: u64,
    pub acks: u64,
    pub nacks: u64,
    /// Responses that Envoy did not need after a reconnect.
    pub unchanged: u64,
    pub from_cache: u64,
    /// Text of the last NACK, and the time since.
    pub last_nack: Option<(String, Duration)>,
    pub last_response: Option<Duration>,
}
