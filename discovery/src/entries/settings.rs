//! What the flags say.

use std::time::Duration;

/// Settings of the life of entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// This process' name: its entries have the controller `app-health/<instance>`.
    pub instance: String,
    /// Whether others write to the store too: then only entries of this instance are its own.
    pub shared: bool,
    /// How often our agents report.
    pub heartbeat: Duration,
    /// From a lost stream to its consequence.
    pub disconnect_grace: Duration,
    /// From the start until those are missed that were known then, and did not come back for 30 s since.
    pub restart_grace: Duration,
    /// What becomes of the endpoint of an entry whose condition is Unknown.
    pub unknown_policy: UnknownPolicy,
    /// Whether a service may keep its last endpoint by default; services say so themselves too.
    pub keep_last_endpoint: bool,
    /// Must an entry's address be the peer address of its stream?
    pub peer_address_check: PeerAddressCheck,
    /// A stream's reports are applied at most so often; the newest of those that come faster waits.
    pub report_interval: Duration,
    /// Reports that a quiet stream may send at once.
    pub report_burst: u32,
    /// How old a stored lastProbeTime may become through heartbeats; `None`: heartbeats are never written.
    pub probe_time_write: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            instance: "app-health".to_owned(),
            shared: false,
            heartbeat: Duration::from_secs(60),
            disconnect_grace: Duration::from_secs(10),
            restart_grace: Duration::from_secs(120),
            unknown_policy: UnknownPolicy::Remove,
            keep_last_endpoint: false,
            peer_address_check: PeerAddressCheck::Warn,
            report_interval: Duration::from_millis(500),
            report_burst: 10,
            probe_time_write: None,
        }
    }
}

/// `--unknown-policy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownPolicy {
    /// It is removed.
    Remove,
    /// It stays if it was served when the condition became Unknown.
    Keep,
}

/// `--peer-address-check`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerAddressCheck {
    /// Nobody looks.
    Off,
    /// An event.
    Warn,
    /// The stream is refused.
    Require,
}

impl Settings {
    /// From when on an agent that reported at `now` is silent: three heartbeats, each late by the most that jitter makes it. An entry
    /// that is older than the process (`is_restored`) is missed only after the grace of the start.
    pub(super) fn silence_from(&self, now: Duration, is_restored: bool) -> Duration {
        let heartbeats = self.heartbeat.saturating_mul(18) / 5;
        now.saturating_add(heartbeats).max(self.earliest(is_restored))
    }

    /// From when on what was lost at `now` is missed.
    pub(super) fn grace_from(&self, now: Duration, is_restored: bool) -> Duration {
        now.saturating_add(self.disconnect_grace).max(self.earliest(is_restored))
    }

    fn earliest(&self, is_restored: bool) -> Duration {
        if is_restored { self.restart_grace } else { Duration::ZERO }
    }
}
