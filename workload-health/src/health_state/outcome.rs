//! How one probe of a virtual machine ended, and the closed set of reasons.

use std::str::FromStr;

use crate::health_report::printable;

/// How one probe ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As it should.
    Healthy,
    /// Otherwise, or it could not be done.
    Unhealthy(Unhealthy),
}

impl Outcome {
    /// A failure.
    pub fn unhealthy(reason: HealthReason, text: &str) -> Self {
        Self::Unhealthy(Unhealthy::new(reason, text))
    }
}

/// A failure, which always has a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unhealthy {
    reason: HealthReason,
    text: String,
}

impl Unhealthy {
    /// `text` in printable ASCII, cut at 256 bytes; an empty one is the reason's own.
    pub fn new(reason: HealthReason, text: &str) -> Self {
        let text = if text.is_empty() { reason.text().to_owned() } else { printable(text) };
        Self { reason, text }
    }

    /// Why.
    pub fn reason(&self) -> HealthReason {
        self.reason
    }

    /// Why, in a line that is never empty.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn into_parts(self) -> (HealthReason, String) {
        (self.reason, self.text)
    }
}

/// Why a workload's state is what it is. The words are an interface: they stand in reports, metrics and conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HealthReason {
    /// No threshold has been reached yet.
    AwaitingVerdict,
    /// Nothing probes.
    NoProbe,
    /// The probe succeeded.
    ProbeSucceeded,
    /// The application answered with a status that is none of 200-399.
    HttpStatus,
    /// What came is no answer of the protocol.
    BadResponse,
    /// The TLS handshake failed.
    Tls,
    /// Nothing listens there.
    ConnectionRefused,
    /// The machine has no way to that address.
    Unreachable,
    /// No answer in time.
    Timeout,
    /// gRPC health says that it is not SERVING.
    GrpcNotServing,
    /// The gRPC call ended with an error.
    GrpcStatus,
    /// The command ended with another code than 0, or by a signal.
    ExecExit,
    /// The command did not end in time.
    ExecTimeout,
    /// The probe cannot be done on this machine.
    CannotRun,
    /// The target is another machine.
    TargetNotLocal,
    /// Envoy is not ready, so the application was not asked.
    EnvoyNotReady,
    /// The agent drains.
    Draining,
    /// The agent is about to end.
    Terminating,
}

impl HealthReason {
    /// Every reason.
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

    /// As it crosses the wire.
    pub fn word(self) -> &'static str {
        self.row().0
    }

    /// What it means, in a line for people.
    pub fn text(self) -> &'static str {
        self.row().1
    }

    fn row(self) -> (&'static str, &'static str) {
        match self {
            Self::AwaitingVerdict => ("AwaitingVerdict", "no verdict yet"),
            Self::NoProbe => ("NoProbe", "no probe is configured"),
            Self::ProbeSucceeded => ("ProbeSucceeded", "the probe succeeded"),
            Self::HttpStatus => ("HttpStatus", "the application answered with a failure"),
            Self::BadResponse => ("BadResponse", "not a valid answer"),
            Self::Tls => ("Tls", "TLS handshake failed"),
            Self::ConnectionRefused => ("ConnectionRefused", "connection refused"),
            Self::Unreachable => ("Unreachable", "the address cannot be reached"),
            Self::Timeout => ("Timeout", "no answer within the timeout"),
            Self::GrpcNotServing => ("GrpcNotServing", "the service is not serving"),
            Self::GrpcStatus => ("GrpcStatus", "the health call failed"),
            Self::ExecExit => ("ExecExit", "the command failed"),
            Self::ExecTimeout => ("ExecTimeout", "the command did not end within the timeout"),
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

/// A word that is no reason of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a reason of this version")]
pub struct NoReason;

impl FromStr for HealthReason {
    type Err = NoReason;

    fn from_str(text: &str) -> Result<Self, NoReason> {
        Self::ALL.into_iter().find(|reason| reason.word() == text).ok_or(NoReason)
    }
}
