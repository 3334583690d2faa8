//! Determines whether Envoy is ready, and if not, why. [`Readiness`] applies one observation after
//! another and produces a [`Snapshot`].
//!
//! [`Readiness`] reads no clock: all times are durations since the agent's start, by the monotonic
//! clock.

mod condition;
mod data_path;
mod liveness;
mod observation;
mod process_state;
mod silence;
mod snapshot;

use std::collections::BTreeMap;
use std::time::Duration;

use clap::ValueEnum;
pub use condition::Condition;
pub use observation::{Channel, Observation};
use process_state::EnvoyProcessState;
use serde_json::Value;
pub use silence::Silence;
pub use snapshot::{Pending, Phase, Snapshot};

use crate::admin::{AdminRequest, AdminResponse, ServerInfo};
use address::RequestFailure;

/// Minimum time between two refused connections that count as an exit of Envoy; a single one may be
/// accidental.
const EXIT_CONFIRMATION: Duration = Duration::from_millis(100);
/// Tolerance in seconds for `/server_info`, which reports whole seconds with a delay.
const UPTIME_SLACK: i64 = 2;

/// Whether clusters and listeners come over xDS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Dynamic {
    /// They do if Envoy has statistics about xDS.
    Auto,
    /// They do, regardless of the statistics.
    On,
    /// They are static, in Envoy's configuration file.
    Off,
}

#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// Whether clusters and listeners are expected over xDS.
    pub dynamic: Dynamic,
    /// Whether the probe listener is checked.
    pub data_path: bool,
    /// Whether Envoy is a child process, whose start and exit are observed directly.
    pub child: bool,
    /// Whether a drain leaves readiness unchanged.
    pub drain_keeps_ready: bool,
}

/// State machine that produces the snapshots, over all Envoy processes.
#[derive(Debug)]
pub struct Readiness {
    policy: Policy,
    envoy: EnvoyProcessState,
    /// Number that increases with every start and every exit of Envoy; results of requests from an
    /// earlier generation are ignored.
    generation: u32,
    epoch: u32,
    draining: bool,
    terminating: bool,
    /// Whether the names of the mesh have arrived; `None` if no DNS queries are answered.
    has_names: Option<bool>,
    /// True if any Envoy process has been live.
    was_live: bool,
    /// True if any Envoy process has been ready.
    was_ever_ready: bool,
    /// Last observation of each channel and its time, for debugging.
    last: BTreeMap<&'static str, (String, Duration)>,
    snapshot: Snapshot,
}

impl Readiness {
    pub fn new(policy: Policy, now: Duration) -> Self {
        let mut ready = Self {
            policy,
            envoy: EnvoyProcessState::default(),
            generation: 0,
            epoch: 1,
            draining: false,
            terminating: false,
            has_names: None,
            was_live: false,
            was_ever_ready: false,
            last: BTreeMap::new(),
            snapshot: Snapshot::first(now),
        };
        ready.update(now);
        ready
    }

    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Returns the generation for a new request, whose result counts only while the generation does
    /// not change.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Returns the generation and whether an Envoy process exists. Timers restart when this value
    /// changes.
    pub fn process_key(&self) -> (u32, bool) {
        (self.generation, self.envoy.process)
    }

    pub fn next_admin_request(&self) -> AdminRequest {
        self.envoy.next_admin_request(self.policy.child)
    }

    /// Returns true if readiness waits for the probe listener.
    pub fn data_path_pending(&self) -> bool {
        self.policy.data_path && !self.envoy.data_path.met
    }

    /// Returns true if the last request to the probe listener failed. If the listener is checked only to
    /// notice an Envoy that hangs, any response counts.
    pub fn data_path_failing(&self) -> bool {
        let data_path = &self.envoy.data_path;
        if self.policy.data_path { data_path.is_failing() } else { data_path.unresponsive_since.is_some() }
    }

    /// Returns the period in which Envoy has not responded on any channel.
    pub fn silence(&self) -> Silence {
        self.envoy.silence
    }

    /// Returns true if a stats matcher excludes `workers_started`, so that the data path is used
    /// instead.
    pub fn workers_hidden(&self) -> bool {
        self.envoy.workers_hidden
    }

    /// Returns true if requests make sense: an external Envoy may exist at any time, a child
    /// process only after its start.
    pub fn can_request(&self) -> bool {
        !self.policy.child || self.envoy.process
    }

    /// Returns true if the admin interface of the current Envoy process has responded.
    pub fn has_admin_responded(&self) -> bool {
        self.snapshot.met.iter().any(|(met, _)| *met == Condition::Admin)
    }

    /// Returns true if the current Envoy process has been ready.
    pub fn was_ready(&self) -> bool {
        self.envoy.was_ready && !self.envoy.exited
    }

    /// Returns true if any Envoy process has been ready.
    pub fn was_ever_ready(&self) -> bool {
        self.was_ever_ready
    }

    pub fn was_live(&self) -> bool {
        self.was_live
    }

    /// Returns the snapshot as JSON with the policy and the last observation of each channel, for
    /// clients on this host only.
    pub fn detailed(&self, now: Duration) -> Value {
        let mut json = self.snapshot.json(now);
        json["generation"] = self.generation.into();
        json["policy"] = format!("{:?}", self.policy).into();
        for (channel, (response, at)) in &self.last {
            let seconds_ago = now.saturating_sub(*at).as_secs_f64();
            json["last"][*channel] = serde_json::json!({"answer": response, "secondsAgo": seconds_ago});
        }
        json
    }

    /// Applies one observation; `generation` is the one at the start of the request.
    pub fn observe(&mut self, generation: u32, observation: Observation, now: Duration) {
        match &observation {
            Observation::Admin(response) => self.last.insert("admin", (format!("{response:?}"), now)),
            Observation::DataPath(response) => self.last.insert("data-path", (format!("{response:?}"), now)),
            _ => None,
        };
        match observation {
            Observation::Draining => self.draining = true,
            Observation::Undrained => self.draining = false,
            Observation::Terminating => self.terminating = true,
            Observation::NamesAwaited => self.has_names = Some(false),
            Observation::NamesReceived => self.has_names = Some(true),
            Observation::Started => {
                if self.envoy.exited {
                    self.next_epoch();
                }
                self.generation += 1;
                self.envoy.process = true;
            }
            Observation::Exited => self.exited(),
            Observation::Restarting => self.envoy.restarting = true,
            // The result is outdated, or another process answers at the address of a child that
            // does not run.
            _ if generation != self.generation || !self.can_request() => return,
            Observation::Accepted(channel) => self.accepted(channel),
            Observation::Admin(Ok(response)) => {
                self.envoy.admin_unresponsive_since = None;
                self.envoy.silence.admin(true);
                self.accepted(Channel::Admin);
                match response {
                    AdminResponse::State(state) => self.envoy.state(state),
                    AdminResponse::Stats(stats) => self.envoy.stats(stats, self.policy.dynamic),
                    AdminResponse::ServerInfo(info) => self.server_info(info, now),
                }
            }
            Observation::Admin(Err(failure)) => {
                self.envoy.admin_unresponsive_since.get_or_insert(now);
                self.envoy.silence.admin(failure.is_response());
                if failure == RequestFailure::Refused {
                    self.refused(Channel::Admin, now);
                }
            }
            Observation::DataPath(response) => {
                if response.is_ok() {
                    self.accepted(Channel::DataPath);
                }
                self.envoy.silence.data_path(response.is_ok(), self.envoy.was_ready, now);
                self.envoy.data_path.observe(response, self.envoy.was_ready, now);
                if response == Err(RequestFailure::Refused) {
                    self.refused(Channel::DataPath, now);
                }
            }
        }
        self.update(now);
    }

    fn accepted(&mut self, channel: Channel) {
        if self.envoy.exited {
            self.next_epoch();
        }
        self.envoy.process = true;
        self.envoy.accepted(channel);
    }

    /// Detects an exit of Envoy by refused connections: those of the probe listener once it has
    /// accepted a connection, and until then those of the admin interface.
    fn refused(&mut self, channel: Channel, now: Duration) {
        let witness = if self.envoy.data_path.accepted { Channel::DataPath } else { Channel::Admin };
        let first = *self.envoy.refused_since(channel).get_or_insert(now);
        if !self.policy.child
            && self.envoy.process
            && channel == witness
            && now.saturating_sub(first) >= EXIT_CONFIRMATION
        {
            self.exited();
        }
    }

    fn exited(&mut self) {
        self.generation += 1;
        self.envoy = EnvoyProcessState::after(&self.envoy);
    }

    /// Detects a restart of Envoy by an uptime that has decreased. A change of the wall clock can
    /// decrease it too, but hardly to less than the time since the last response.
    fn server_info(&mut self, info: ServerInfo, now: Duration) {
        if let Some((uptime, at)) = self.envoy.uptime
            && !self.policy.child
        {
            let since = i64::try_from(now.saturating_sub(at).as_secs()).unwrap_or(i64::MAX);
            if info.uptime < uptime && info.uptime <= since.saturating_add(UPTIME_SLACK) {
                self.generation += 1;
                self.next_epoch();
                self.envoy.process = true;
            }
        }
        self.envoy.uptime = Some((info.uptime, now));
        self.envoy.version = info.version;
        self.envoy.state(info.state);
    }

    fn next_epoch(&mut self) {
        self.epoch += 1;
        self.envoy = EnvoyProcessState::default();
    }

    fn update(&mut self, now: Duration) {
        self.was_live |= self.envoy.is_live();
        let mut conditions = self.envoy.conditions(self.policy);
        let names = self.has_names.map(|has_names| {
            (Condition::Names, (!has_names).then(|| "names of the mesh not received".to_owned()))
        });
        conditions.extend(names);
        let draining = self.draining && !self.policy.drain_keeps_ready;
        conditions.push((Condition::Drain, draining.then(|| "draining".to_owned())));
        conditions.push((Condition::Shutdown, self.terminating.then(|| "terminating".to_owned())));
        let (pending, met) = condition::split(conditions);
        let phase = match () {
            () if self.terminating => Phase::Terminating,
            () if self.draining => Phase::Draining,
            () if pending.is_empty() => Phase::Ready,
            () if self.envoy.was_ready => Phase::NotReady,
            () => Phase::Starting,
        };
        self.envoy.was_ready |= pending.is_empty();
        self.was_ever_ready |= pending.is_empty();
        self.snapshot = self.snapshot.next(phase, pending, met, self.epoch, self.envoy.version.clone(), now);
    }
}

#[cfg(test)]
mod tests;
