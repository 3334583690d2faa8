//! PURE. Is this Envoy ready, and if not, why? Observations go in, one after another, and a [`Snapshot`] comes out.
//!
//! Time is an argument everywhere: the time since the agent started, by the monotonic clock.

mod condition;
mod pace;
pub mod poller;
pub mod server;
mod snapshot;

use std::time::Duration;

pub use condition::Condition;
use condition::Life;
pub use pace::{AdminPace, DataPathPace};
pub use snapshot::{Pending, Phase, Snapshot};

use crate::args::Dynamic;
use crate::envoy::{AdminAnswer, AdminQuestion, ServerInfo};

/// Two refusals at least so far apart are Envoy's death; a single one may be an accident.
const DEATH: Duration = Duration::from_millis(100);
/// `/server_info` has whole seconds, and its answer takes time.
const UPTIME_SLACK: i64 = 2;

/// What a question came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observation {
    /// Somebody accepted the connection of a question.
    Accepted(Channel),
    /// A question to the admin port is over.
    Admin(Result<AdminAnswer, Failure>),
    /// A question to the probe listener is over.
    DataPath(Result<DataPathAnswer, Failure>),
    /// A drain has begun.
    Draining,
    /// The agent is about to end.
    Terminating,
}

/// Whom a question goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// Envoy's admin port.
    Admin,
    /// The probe listener.
    DataPath,
}

/// The probe listener's answer to a probe that nobody declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataPathAnswer {
    /// HTTP status.
    pub status: u16,
    /// The filter's word was in the body.
    pub unknown_probe: bool,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// Nobody accepts connections there.
    Refused,
    /// Not in time.
    Timeout,
    /// Longer than it may be.
    TooLarge,
    /// Broken off, or not what Envoy says.
    BadAnswer,
}

/// What readiness is made of.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// Do clusters and listeners come over xDS?
    pub dynamic: Dynamic,
    /// Is the probe listener asked?
    pub data_path: bool,
}

/// The state behind the snapshots: one Envoy, started by somebody else.
#[derive(Debug)]
pub struct Ready {
    policy: Policy,
    life: Life,
    /// Grows with every start and every end of an Envoy: what was asked before is not about this one.
    generation: u32,
    epoch: u32,
    draining: bool,
    terminating: bool,
    snapshot: Snapshot,
}

impl Ready {
    /// Nothing is known yet. `now`: since the agent started.
    pub fn new(policy: Policy, now: Duration) -> Self {
        let life = Life::new();
        let snapshot = Snapshot::first(now);
        let mut ready =
            Self { policy, life, generation: 0, epoch: 1, draining: false, terminating: false, snapshot };
        ready.update(now);
        ready
    }

    /// What follows from all observations so far.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Stamps a question: its answer counts as long as this has not changed.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// The same, and whether there is an Envoy: whoever waits for something waits anew when this changes.
    pub fn life(&self) -> (u32, bool) {
        (self.generation, self.life.process)
    }

    /// What to ask the admin port next.
    pub fn admin_question(&self) -> AdminQuestion {
        self.life.admin_question()
    }

    /// Is the probe listener's answer what readiness waits for?
    pub fn data_path_pending(&self) -> bool {
        !self.life.data_path.met
    }

    /// `workers_started` is hidden by a stats matcher, so that the data path stands for it.
    pub fn workers_hidden(&self) -> bool {
        self.life.workers_hidden
    }

    /// Takes one observation; `generation` is that of the question's beginning.
    pub fn observe(&mut self, generation: u32, observation: Observation, now: Duration) {
        match observation {
            Observation::Draining => self.draining = true,
            Observation::Terminating => self.terminating = true,
            _ if generation != self.generation => return,
            Observation::Accepted(channel) => self.accepted(channel),
            Observation::Admin(Ok(answer)) => {
                self.accepted(Channel::Admin);
                self.admin(answer, now);
            }
            Observation::Admin(Err(Failure::Refused)) => self.refused(Channel::Admin, now),
            Observation::Admin(Err(_)) => {}
            Observation::DataPath(answer) => {
                if answer.is_ok() {
                    self.accepted(Channel::DataPath);
                }
                self.life.data_path.observe(answer, self.life.was_ready);
                if answer == Err(Failure::Refused) {
                    self.refused(Channel::DataPath, now);
                }
            }
        }
        self.update(now);
    }

    fn accepted(&mut self, channel: Channel) {
        if self.life.exited {
            self.next_epoch();
        }
        self.life.process = true;
        self.life.accepted(channel);
    }

    /// The probe listener tells of Envoy's death, once it has been there; until then the admin port.
    fn refused(&mut self, channel: Channel, now: Duration) {
        let witness = if self.life.data_path.accepted { Channel::DataPath } else { Channel::Admin };
        let first = *self.life.refused_since(channel).get_or_insert(now);
        if self.life.process && channel == witness && now.saturating_sub(first) >= DEATH {
            self.generation += 1;
            self.life = Life::after(&self.life);
        }
    }

    fn admin(&mut self, answer: AdminAnswer, now: Duration) {
        match answer {
            AdminAnswer::Ready(state) => self.life.state(state),
            AdminAnswer::Stats(stats) => self.life.stats(stats, self.policy.dynamic),
            AdminAnswer::ServerInfo(info) => self.server_info(info, now),
        }
    }

    /// An uptime that went back is another Envoy. The wall clock can set it back too, but then it would hardly be as short as the time
    /// since the last answer.
    fn server_info(&mut self, info: ServerInfo, now: Duration) {
        if let Some((uptime, at)) = self.life.uptime {
            let since = i64::try_from(now.saturating_sub(at).as_secs()).unwrap_or(i64::MAX);
            if info.uptime < uptime && info.uptime <= since.saturating_add(UPTIME_SLACK) {
                self.generation += 1;
                self.next_epoch();
                self.life.process = true;
            }
        }
        self.life.uptime = Some((info.uptime, now));
        self.life.version = info.version;
        self.life.state(info.state);
    }

    fn next_epoch(&mut self) {
        self.epoch += 1;
        self.life = Life::new();
    }

    fn update(&mut self, now: Duration) {
        let mut pending = self.life.pending(self.policy);
        if self.draining {
            pending.push((Condition::Drain, "draining".to_owned()));
        }
        if self.terminating {
            pending.push((Condition::Shutdown, "terminating".to_owned()));
        }
        let met = self.life.met(self.policy, self.draining, self.terminating);
        let phase = match () {
            () if self.terminating => Phase::Terminating,
            () if self.draining => Phase::Draining,
            () if pending.is_empty() => Phase::Ready,
            () if self.life.was_ready => Phase::NotReady,
            () => Phase::Starting,
        };
        self.life.was_ready |= phase == Phase::Ready;
        self.snapshot = self.snapshot.next(phase, pending, met, self.epoch, self.life.version.clone(), now);
    }
}

#[cfg(test)]
mod tests;
