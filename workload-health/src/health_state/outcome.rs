//! The outcome of one probe of a virtual machine, and the closed set of reasons.

use std::str::FromStr;

use crate::health_report::printable;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The probe succeeded within its timeout.
    Healthy,
    /// The probe failed, or could not be run.
    Unhealthy(Unhealthy),
}

impl Outcome {
    pub fn unhealthy(reason: HealthReason, text: &str) -> Self {
        Self::Unhealthy(Unhealthy::new(reason, text))
    }
}

/// A failure with its reason and a text that is never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unhealthy {
    reason: HealthReason,
    text: String,
}

impl Unhealthy {
    /// Converts `text` to printable ASCII of at most 256 bytes; an empty text is replaced by the
    /// reason's own.
    pub fn new(reason: HealthReason, text: &str) -> Self {
        let text = if text.is_empty() { reason.text().to_owned() } else { printable(text) };
        Self { reason, text }
    }

    pub fn reason(&self) -> HealthReason {
        self.reason
    }

    /// Returns a description in one line, never empty.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn into_parts(self) -> (HealthReason, String) {
        (self.reason, self.text)
    }
}

/// The reason of a workload's state. The words are a public interface: reports, metrics and
/// conditions contain them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HealthReason {
    AwaitingVerdict,
    NoProbe,
    /// As many probes in a row have succeeded as the success threshold requires.
    ProbeSucceeded,
    /// The application responded with a status outside 200 to 399.
    HttpStatus,
    /// The response is not valid in the protocol of the probe.
    BadResponse,
    Tls,
    ConnectionRefused,
    Unreachable,
    Timeout,
    GrpcNotServing,
    GrpcStatus,
    /// The command exited with a code other than 0, or was killed by a signal.
    ExecExit,
    ExecTimeout,
    /// The probe cannot be run on this machine.
    CannotRun,
    /// The target is not an address of this machine.
    TargetNotLocal,
    /// Envoy is not ready, so the application was not probed.
    EnvoyNotReady,
    Draining,
    Terminating,
}

impl HealthReason {
    /// All reasons, in the order of their definition.
    pub const ALL: [Self; 18] = [
        Self::AwaitingVerdict,
        Self::NoProbe,
        Self::ProbeSucceeded,
        Self::HttpStatus,
        Self::BadResponse,
        Self::Tls,
        Self::ConnectionRefused,
        Self::Unreachable,
        Self::Timeout,
        Self::GrpcNotServing,
        Self::GrpcStatus,
        Self::ExecExit,
        Self::ExecTimeout,
        Self::CannotRun,
        Self::TargetNotLocal,
        Self::EnvoyNotReady,
        Self::Draining,
        Self::Terminating,
    ];

    /// Returns the name of the reason as in reports.
    pub fn word(self) -> &'static str {
        self.row().0
    }

    pub fn text(self) -> &'static str {
        self.row().1
    }

    fn row(self) -> (&'static str, &'static str) {
        match self {
            Self::AwaitingVerdict => ("AwaitingVerdict", "no verdict yet"),
            Self::NoProbe => ("NoProbe", "no probe is configured"),
            Self::ProbeSucceeded => ("ProbeSucceeded", "the probe succeeded"),
            Self::HttpStatus => ("HttpStatus", "the application responded with a failure status"),
            Self::BadResponse => ("BadResponse", "not a valid response"),
            Self::Tls => ("Tls", "TLS handshake failed"),
            Self::ConnectionRefused => ("ConnectionRefused", "connection refused"),
            Self::Unreachable => ("Unreachable", "the address cannot be reached"),
            Self::Timeout => ("Timeout", "no response within the timeout"),
            Self::GrpcNotServing => ("GrpcNotServing", "the service is not serving"),
            Self::GrpcStatus => ("GrpcStatus", "the health call failed"),
            Self::ExecExit => ("ExecExit", "the command failed"),
            Self::ExecTimeout => ("ExecTimeout", "the command did not exit within the timeout"),
            Self::CannotRun => ("CannotRun", "the probe cannot be run"),
            Self::TargetNotLocal => ("TargetNotLocal", "the target is not this machine"),
            Self::EnvoyNotReady => ("EnvoyNotReady", "Envoy is not ready"),
            Self::Draining => ("Draining", "the agent is draining"),
            Self::Terminating => ("Terminating", "the agent is terminating"),
        }
    }
}

impl std::fmt::Display for HealthReason {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        formatter.write_str(self.word())
    }
}

/// The error for a text that is not the name of a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a health reason that this version knows")]
pub struct ParseReasonError;

impl FromStr for HealthReason {
    type Err = ParseReasonError;

    fn from_str(text: &str) -> Result<Self, ParseReasonError> {
        Self::ALL.into_iter().find(|reason| reason.word() == text).ok_or(ParseReasonError)
    }
}
