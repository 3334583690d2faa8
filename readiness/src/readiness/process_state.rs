//! What is known about one Envoy process: which of its conditions are met, and the reason text of
//! each other one.

use std::time::Duration;

use super::data_path::DataPath;
use super::silence::Silence;
use super::{Channel, Condition, Policy};
use crate::Dynamic;
use crate::admin::{AdminRequest, ReadinessStats, ServerState, UpdateCounters};

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

/// State of one Envoy process, from its first sign to its exit.
#[derive(Debug, Default)]
pub(super) struct EnvoyProcessState {
    pub(super) process: bool,
    pub(super) exited: bool,
    /// True if the agent will start the next process.
    pub(super) restarting: bool,
    pub(super) was_ready: bool,
    pub(super) data_path: DataPath,
    pub(super) silence: Silence,
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

    /// `child` means that Envoy is a child process of the agent.
    pub(super) fn next_admin_request(&self, child: bool) -> AdminRequest {
        let configured = self.clusters == ConfigState::Received && self.listeners == ConfigState::Received;
        match self.state {
            Some(ServerState::Live) if configured && (self.workers || self.workers_hidden) => {
                if child && self.uptime.is_some() { AdminRequest::State } else { AdminRequest::ServerInfo }
            }
            Some(ServerState::Live) => AdminRequest::Stats,
            _ => AdminRequest::Ready,
        }
    }

    /// Returns every condition of Envoy, each with the reason if it is not met.
    pub(super) fn conditions(&self, policy: Policy) -> Vec<(Condition, Option<String>)> {
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
            conditions.push((Condition::DataPath, self.data_path.pending()));
        }
        conditions
    }
}
