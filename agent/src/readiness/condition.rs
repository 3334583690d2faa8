//! The readiness conditions of one Envoy process: when each of them is met, and the reason text
//! while it is not.

use std::time::Duration;

use super::{Channel, Policy};
use crate::args::Dynamic;
use crate::envoy::admin::{AdminRequest, DataPathResponse, ReadinessStats, ServerState, UpdateCounters};
use crate::http_client::RequestFailure;

/// Number of consecutive failures after which a data path that answered before is not met any more.
const DATA_PATH_FAILURES: u32 = 3;

/// Readiness condition; Envoy is ready if all conditions are met. `Ord` is the order of the names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// Envoy's admin interface has answered.
    Admin,
    /// Clusters were received, or are static.
    Clusters,
    /// The probe listener and the filter answer.
    DataPath,
    /// No drain is in progress.
    Drain,
    /// Listeners were received, or are static.
    Listeners,
    /// Envoy reports the state `LIVE`.
    Live,
    /// An Envoy process exists.
    Process,
    /// The agent is not terminating.
    Shutdown,
    /// Envoy's worker threads have started.
    Workers,
}

impl Condition {
    /// Returns the name of the condition in responses and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Clusters => "clusters",
            Self::DataPath => "data-path",
            Self::Drain => "drain",
            Self::Listeners => "listeners",
            Self::Live => "live",
            Self::Process => "process",
            Self::Shutdown => "shutdown",
            Self::Workers => "workers",
        }
    }
}

/// Whether Envoy has received its clusters or its listeners.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ConfigState {
    #[default]
    Missing,
    Rejected,
    Received,
}

impl ConfigState {
    fn of(updates: UpdateCounters, dynamic: Dynamic) -> Self {
        match (updates.success, dynamic) {
            (_, Dynamic::Off) | (None, Dynamic::Auto) => Self::Received,
            (Some(success), _) if success > 0 => Self::Received,
            _ if updates.rejected > Some(0) => Self::Rejected,
            _ => Self::Missing,
        }
    }

    /// After a successful update a later rejection has no effect, because Envoy keeps its
    /// configuration.
    fn observe(&mut self, updates: UpdateCounters, dynamic: Dynamic) {
        if *self != Self::Received {
            *self = Self::of(updates, dynamic);
        }
    }

    fn pending(self, what: &str) -> Option<String> {
        match self {
            Self::Missing => Some(format!("{what} not received")),
            Self::Rejected => Some(format!("{what} rejected")),
            Self::Received => None,
        }
    }
}

/// State of the data path through the probe listener.
#[derive(Debug)]
pub(super) struct DataPath {
    pub(super) met: bool,
    pub(super) accepted: bool,
    /// Start of the period without a response.
    pub(super) unresponsive_since: Option<Duration>,
    failures: u32,
    reason: String,
}

impl Default for DataPath {
    fn default() -> Self {
        let reason = Self::UNRESPONSIVE.to_owned();
        Self { met: false, accepted: false, unresponsive_since: None, failures: 0, reason }
    }
}

impl DataPath {
    const UNRESPONSIVE: &str = "probe listener not answering";

    /// Returns true if the last request failed.
    pub(super) fn is_failing(&self) -> bool {
        self.failures > 0
    }

    /// Status 429 counts as success once Envoy was ready, because it is caused by too many clients
    /// and not by Envoy's failure.
    pub(super) fn observe(
        &mut self,
        answer: Result<DataPathResponse, RequestFailure>,
        was_ready: bool,
        now: Duration,
    ) {
        self.unresponsive_since = answer.is_err().then(|| self.unresponsive_since.unwrap_or(now));
        let reason = match answer {
            Ok(DataPathResponse { status: 404, unknown_probe: true }) => None,
            Ok(DataPathResponse { status: 429, .. }) if was_ready => None,
            Ok(DataPathResponse { status: 404, .. }) => Some("probe filter not answering".to_owned()),
            Ok(DataPathResponse { status, .. }) => Some(format!("probe listener answers {status}")),
            Err(_) => Some(Self::UNRESPONSIVE.to_owned()),
        };
        match reason {
            None => {
                self.failures = 0;
                self.met = true;
            }
            Some(reason) => {
                self.failures += 1;
                self.reason = reason;
                self.met &= self.failures < DATA_PATH_FAILURES;
            }
        }
    }
}

/// State of one Envoy process, from its first sign to its exit.
#[derive(Debug, Default)]
pub(super) struct EnvoyProcessState {
    pub(super) process: bool,
    /// True if the process has exited.
    pub(super) exited: bool,
    /// True if the agent will start the next process.
    pub(super) restarting: bool,
    pub(super) was_ready: bool,
    pub(super) data_path: DataPath,
    pub(super) version: Option<String>,
    /// Uptime in seconds from the last `/server_info`, and the time of that response.
    pub(super) uptime: Option<(i64, Duration)>,
    pub(super) workers_hidden: bool,
    /// Start of the period in which no admin request was answered.
    pub(super) admin_unresponsive_since: Option<Duration>,
    state: Option<ServerState>,
    clusters: ConfigState,
    listeners: ConfigState,
    workers: bool,
    admin_refused: Option<Duration>,
    data_path_refused: Option<Duration>,
}

impl EnvoyProcessState {
    /// Returns the state between the exit of the process `exited` and the start of the next one.
    pub(super) fn after(exited: &Self) -> Self {
        Self { exited: true, was_ready: exited.was_ready, ..Self::default() }
    }

    pub(super) fn is_live(&self) -> bool {
        self.state == Some(ServerState::Live)
    }

    pub(super) fn accepted(&mut self, channel: Channel) {
        *self.refused_since(channel) = None;
        self.data_path.accepted |= channel == Channel::DataPath;
    }

    pub(super) fn refused_since(&mut self, channel: Channel) -> &mut Option<Duration> {
        match channel {
            Channel::Admin => &mut self.admin_refused,
            Channel::DataPath => &mut self.data_path_refused,
        }
    }

    /// Keeps the state `LIVE` except for a drain, because Envoy never returns to initializing.
    pub(super) fn state(&mut self, state: ServerState) {
        if self.state != Some(ServerState::Live) || state == ServerState::Draining {
            self.state = Some(state);
        }
    }

    pub(super) fn stats(&mut self, stats: ReadinessStats, dynamic: Dynamic) {
        self.clusters.observe(stats.clusters, dynamic);
        self.listeners.observe(stats.listeners, dynamic);
        self.workers |= stats.workers_started == Some(1);
        self.workers_hidden = !self.workers && stats.workers_started.is_none();
    }

    pub(super) fn next_admin_request(&self) -> AdminRequest {
        let configured = self.clusters == ConfigState::Received && self.listeners == ConfigState::Received;
        match self.state {
            Some(ServerState::Live) if configured && (self.workers || self.workers_hidden) => {
                AdminRequest::ServerInfo
            }
            Some(ServerState::Live) => AdminRequest::Stats,
            _ => AdminRequest::Ready,
        }
    }

    /// Returns every condition of Envoy, each with the reason if it is not met.
    fn conditions(&self, policy: Policy) -> Vec<(Condition, Option<String>)> {
        let unless = |met: bool, reason: &str| (!met).then(|| reason.to_owned());
        let process = match (self.exited, self.restarting) {
            (_, true) => "envoy restarting",
            (true, false) => "envoy exited",
            (false, false) => "envoy not started",
        };
        let live = match self.state {
            Some(ServerState::Live) => None,
            Some(ServerState::Draining) => Some("envoy draining".to_owned()),
            Some(ServerState::Initializing) => Some("envoy initializing".to_owned()),
            Some(ServerState::PreInitializing) | None => Some("envoy pre-initializing".to_owned()),
        };
        let workers = self.workers || self.workers_hidden && (self.data_path.met || !policy.data_path);
        let mut conditions = vec![
            (Condition::Process, unless(self.process, process)),
            (Condition::Admin, unless(self.state.is_some(), "envoy admin not answering")),
            (Condition::Live, live),
            (Condition::Clusters, self.clusters.pending("clusters")),
            (Condition::Listeners, self.listeners.pending("listeners")),
            (Condition::Workers, unless(workers, "workers not started")),
        ];
        if policy.data_path {
            conditions.push((Condition::DataPath, unless(self.data_path.met, &self.data_path.reason)));
        }
        conditions
    }

    /// Returns the pending conditions. A condition that depends on another pending one is omitted,
    /// so that a missing Envoy is reported as one reason and not as seven.
    pub(super) fn pending(&self, policy: Policy) -> Vec<(Condition, String)> {
        let conditions = self.conditions(policy);
        let is_met =
            |condition| conditions.iter().any(|(other, reason)| *other == condition && reason.is_none());
        let relevant = |condition| match condition {
            Condition::Admin | Condition::DataPath => is_met(Condition::Process),
            Condition::Live => is_met(Condition::Admin),
            Condition::Clusters | Condition::Listeners | Condition::Workers => is_met(Condition::Live),
            Condition::Process | Condition::Drain | Condition::Shutdown => true,
        };
        let pending = conditions.iter().filter(|(condition, _)| relevant(*condition));
        pending.filter_map(|(condition, reason)| Some((*condition, reason.clone()?))).collect()
    }

    /// Returns the conditions that are met, in order.
    pub(super) fn met(&self, policy: Policy, draining: bool, terminating: bool) -> Vec<Condition> {
        let conditions = self.conditions(policy).into_iter();
        let mut met: Vec<Condition> =
            conditions.filter(|(_, reason)| reason.is_none()).map(|(condition, _)| condition).collect();
        met.extend((!draining).then_some(Condition::Drain));
        met.extend((!terminating).then_some(Condition::Shutdown));
        met.sort();
        met
    }
}
