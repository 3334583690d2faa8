//! Inputs and effects of the reporter's state machine, and the types that they carry.

use std::time::Duration;

use crate::{HealthReason, Hello, Report, Verdict};
use serde_json::Value;

/// Settings of the reporter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReporterSettings {
    /// Identifier of this process: 32 hexadecimal digits, new at each start.
    pub epoch: String,
    /// Interval towards an app-health server; the server may ask for a shorter one.
    pub heartbeat: Duration,
    /// Interval towards a server with only Istio's protocol, such as istiod; `None` disables it.
    pub istio_heartbeat: Option<Duration>,
    /// The longest wait for the acknowledgement of the final report.
    pub final_report_timeout: Duration,
}

/// Health status of the workload. Times count from the agent's start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthStatus {
    pub verdict: Verdict,
    /// Time of the last state transition.
    pub since: Duration,
    pub last_probe: Option<Duration>,
    /// Sum of the probe's period and timeout.
    pub interval: Option<Duration>,
    /// Latest time of the first result; `None` once there is one.
    pub verdict_due: Option<Duration>,
}

impl HealthStatus {
    /// True if the agent terminates, after which the status does not change again. A drain comes before
    /// that, so its report is not the last one.
    pub(super) fn is_final(&self) -> bool {
        self.verdict.reason == HealthReason::Terminating
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// The health status has changed, at least in part.
    Status(HealthStatus),
    /// Reports may be sent on a new stream, whose first request was sent.
    Opened,
    /// The stream can no longer be used.
    Closed,
    /// The server sent a hello message: the first one on a stream, or a later one with another
    /// probe.
    Hello {
        hello: Hello,
        version: String,
        nonce: String,
    },
    /// The server sent a message of the hello's type that cannot be parsed.
    Malformed {
        text: String,
        nonce: String,
    },
    /// The prober accepted or rejected the probe of an [`Effect::ValidateProbe`].
    Validated {
        hello: HelloId,
        /// `Ok` if the probe is in force; otherwise why it was rejected.
        result: Result<(), String>,
    },
    /// The server stored the report with this version, `<epoch>/<generation>`.
    Acknowledged(String),
    /// The agent begins to shut down.
    Shutdown,
    Tick,
}

/// The hello message that a pushed probe arrived in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelloId {
    /// Number of the stream.
    pub stream: u64,
    pub version: String,
    pub nonce: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// A state transition, a heartbeat, or the first report on a stream.
    New,
    /// A retry, because the previous report may have been lost.
    Retry,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    Send(Report, Attempt),
    /// There is no probe, and the server has sent none, as istiod never does. It serves the workload
    /// whatever its health is.
    NothingToReport,
    /// Validate a pushed probe; the result is an [`Input::Validated`].
    ValidateProbe {
        hello: HelloId,
        /// `None` if the server has no probe for this workload.
        probe: Option<Value>,
    },
    /// Acknowledge or reject the hello message with this nonce (ACK or NACK).
    AckOrNack {
        /// The version in force: that of the message, or the previous one if the message is
        /// rejected.
        version: String,
        nonce: String,
        /// Why the message is rejected; `None` for an ACK.
        nack_reason: Option<String>,
    },
    /// The server acknowledges no reports. The stream is used no more, and must be replaced.
    Unresponsive,
    /// The final report is delivered. The stream may end now.
    Delivered,
    /// The final report is delivered or has timed out; the reporter is finished.
    Done,
}
