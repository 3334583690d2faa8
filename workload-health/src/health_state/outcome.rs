//! The outcome of one probe of a virtual machine, and the closed set of reasons.

use std::str::FromStr;

use crate::text::printable;

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

enum_table::table! {
    /// The reason of a workload's state. The words are a public interface: reports, metrics and
    /// conditions contain them.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum HealthReason(
        /// Returns the name of the reason as in reports.
        word: &'static str,
        text: &'static str,
    ) {
        AwaitingVerdict("AwaitingVerdict", "no verdict yet"),
        NoProbe("NoProbe", "no probe is configured"),
        /// As many probes in a row have succeeded as the success threshold requires.
        ProbeSucceeded("ProbeSucceeded", "the probe succeeded"),
        /// The application responded with a status outside 200 to 399.
        HttpStatus("HttpStatus", "the application responded with a failure status"),
        /// The response is not valid in the protocol of the probe.
        BadResponse("BadResponse", "not a valid response"),
        Tls("Tls", "TLS handshake failed"),
        ConnectionRefused("ConnectionRefused", "connection refused"),
        Unreachable("Unreachable", "the address cannot be reached"),
        Timeout("Timeout", "no response within the timeout"),
        GrpcNotServing("GrpcNotServing", "the service is not serving"),
        GrpcStatus("GrpcStatus", "the health call failed"),
        /// The command exited with a code other than 0, or was killed by a signal.
        ExecExit("ExecExit", "the command failed"),
        ExecTimeout("ExecTimeout", "the command did not exit within the timeout"),
        /// The probe cannot be run on this machine.
        CannotRun("CannotRun", "the probe cannot be run"),
        /// The target is not an address of this machine.
        TargetNotLocal("TargetNotLocal", "the target is not this machine"),
        /// Envoy is not ready, so the application was not probed.
        EnvoyNotReady("EnvoyNotReady", "Envoy is not ready"),
        Draining("Draining", "the agent is draining"),
        Terminating("Terminating", "the agent is terminating"),
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
