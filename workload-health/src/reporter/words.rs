//! PURE. What goes into a reporter, and what comes out.

use std::time::Duration;

use crate::{HealthReason, HealthReport, Hello, State};
use serde_json::Value;

/// How to report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// This process: 32 hexadecimal digits, new for each.
    pub epoch: String,
    /// Towards our server, if that does not ask for a shorter one.
    pub heartbeat: Duration,
    /// Towards a plain server; absent: none.
    pub plain_heartbeat: Option<Duration>,
    /// The longest wait for the goodbye's acknowledgement.
    pub goodbye_timeout: Duration,
}

/// The state of the workload's health. Times are since the agent's start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// Flips so far.
    pub generation: u64,
    /// The state.
    pub state: State,
    /// Why.
    pub reason: HealthReason,
    /// For people.
    pub message: String,
    /// When it flipped last.
    pub since: Duration,
    /// When the last probe ended.
    pub last_probe: Option<Duration>,
    /// The probe's period and timeout together.
    pub interval: Option<Duration>,
    /// Before the first verdict: when it is there at the latest.
    pub verdict_due: Option<Duration>,
}

impl Level {
    /// Draining or terminating: no outcome changes it any more.
    pub(super) fn is_final(&self) -> bool {
        matches!(self.reason, HealthReason::Draining | HealthReason::Terminating)
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// The level, or a part of it, is another one.
    Level(Level),
    /// The stream that was asked for is there, and the first request is on its way.
    Opened,
    /// The stream that was asked for did not come about, or is gone.
    Lost(Loss),
    /// Our server's first message, or a later one with another probe.
    Hello {
        /// What it says.
        hello: Hello,
        /// Of the message.
        version: String,
        /// Of the message.
        nonce: String,
    },
    /// A message in the hello's place that says nothing.
    Garbled {
        /// Why.
        text: String,
        /// Of the message.
        nonce: String,
    },
    /// What the prober says to a pushed probe.
    Judged {
        /// Of the [`Effect::Offer`].
        stream: u64,
        /// Of the [`Effect::Offer`].
        version: String,
        /// Of the [`Effect::Offer`].
        nonce: String,
        /// In force now, or why not.
        verdict: Result<(), String>,
    },
    /// Our server has stored a report: `<epoch>/<generation>`.
    Acknowledged(String),
    /// Certificate files have changed, and the new ones can be used.
    FilesChanged,
    /// The agent is about to end.
    Leave,
    /// Time has passed.
    Tick,
}

/// How a stream was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Anything that the next attempt may mend.
    Broken,
    /// The server says no to us: PERMISSION_DENIED, UNAUTHENTICATED, INVALID_ARGUMENT.
    Refused,
}

/// What is said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// In Istio's words alone.
    Plain {
        /// Is it healthy?
        healthy: bool,
        /// Why not.
        message: String,
    },
    /// In Istio's and in ours.
    AppHealth(HealthReport),
}

/// Which time it is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saying {
    /// A change, a heartbeat, or the first word on a stream.
    Anew,
    /// Once more, since the last time may have been lost.
    Again,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Open a stream; the outcome is an input.
    Connect,
    /// Send a report.
    Send(Report, Saying),
    /// Ask the prober to take a probe; its verdict is an input.
    Offer {
        /// Which stream it came on.
        stream: u64,
        /// Of the message.
        version: String,
        /// Of the message.
        nonce: String,
        /// Absent: none.
        probe: Option<Value>,
    },
    /// Answer the hello with this nonce.
    Answer {
        /// The version that is in force: that of the message, or the one before.
        version: String,
        /// Of the message.
        nonce: String,
        /// Why it is refused.
        refusal: Option<String>,
    },
    /// Drop the stream.
    Close,
    /// End our half of the stream.
    HalfClose,
    /// Nothing is left to be said.
    Done,
}
