//! Settings of the state machine, set by flags.

use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Name of this instance. The controller of its entries is `app-health/<instance>`.
    pub instance: String,
    /// True if several instances share the store. Then an instance handles only the timeouts of
    /// entries that it owns.
    pub shared: bool,
    /// Interval between two reports of an app-health agent.
    pub heartbeat: Duration,
    /// Time between the loss of a stream and the removal of the endpoint.
    pub disconnect_grace: Duration,
    /// Time after the start in which agents known from the store may reconnect before their entries
    /// time out. Applies until an agent's stream was open for 30 s.
    pub restart_grace: Duration,
    /// Whether the endpoint of an entry whose condition is Unknown is removed.
    pub unknown_policy: UnknownPolicy,
    /// Whether services keep their last endpoint by default; an annotation of the service takes
    /// precedence.
    pub keep_last_endpoint: bool,
    /// Whether the peer address of a stream must be the address of its entry.
    pub peer_address_check: PeerAddressCheck,
    /// If more percent of a service's machines become silent at once, none is removed.
    pub max_silent_percent: u8,
    /// No more percent of a service's machines are removed for ill health.
    pub max_unhealthy_percent: Option<u8>,
    /// Maximum number of entries that agents with one certificate identity may register.
    pub max_machines_per_identity: usize,
    /// The same for those of them whose machines have one IPv4 address, or are in one IPv6 /64 network.
    pub max_machines_per_source: usize,
    /// Whether an agent's own labels, which decide the services of its machine, are copied.
    pub trust_node_labels: bool,
    /// Minimum interval between two applied reports of a stream. Of the reports that arrive faster,
    /// the newest is applied later.
    pub report_interval: Duration,
    /// Number of reports that an idle stream may send in a burst.
    pub report_burst: u32,
    /// Maximum age of a stored lastProbeTime before a heartbeat updates it; `None`: heartbeats are
    /// never stored.
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
            peer_address_check: PeerAddressCheck::Require,
            max_machines_per_identity: 10_000,
            max_machines_per_source: 64,
            trust_node_labels: false,
            max_silent_percent: 25,
            max_unhealthy_percent: None,
            report_interval: Duration::from_millis(500),
            report_burst: 10,
            probe_time_write: None,
        }
    }
}

/// Limits on the machines of a service that a snapshot removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemovalLimits {
    /// The value of `--max-silent-percent`.
    pub max_silent_percent: u8,
    /// Machines that become silent within this time became silent at once.
    pub window: Duration,
    /// The value of `--max-unhealthy-percent`.
    pub max_unhealthy_percent: Option<u8>,
}

/// Minimum of [`RemovalLimits::window`]: lost peers are detected within 20 s.
const MIN_WINDOW: Duration = Duration::from_secs(60);

/// The values of `--unknown-policy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownPolicy {
    /// The endpoint is removed.
    Remove,
    /// The endpoint stays if it was served when the condition became Unknown.
    Keep,
}

/// The values of `--peer-address-check`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerAddressCheck {
    /// Addresses are not compared.
    Off,
    /// A mismatch is logged and counted.
    Warn,
    /// A mismatch rejects the stream.
    Require,
}

impl Settings {
    /// Returns the limits of snapshots. A certificate that expires ends each stream at its next
    /// report, so the window has two heartbeats.
    pub fn removal_limits(&self) -> RemovalLimits {
        RemovalLimits {
            max_silent_percent: self.max_silent_percent,
            window: self.heartbeat.saturating_mul(2).max(MIN_WINDOW),
            max_unhealthy_percent: self.max_unhealthy_percent,
        }
    }

    /// Returns the longest interval between two reports: a heartbeat with the maximum jitter.
    pub(super) fn heartbeat_at_most(&self) -> Duration {
        self.heartbeat.saturating_mul(6) / 5
    }
}
