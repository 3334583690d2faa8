//! PURE. Is this Envoy ready, and if not, why? Observations go in, one after another, and a [`Snapshot`] comes out.
//!
//! Time is an argument everywhere: the time since the agent started, by the monotonic clock.

mod condition;
mod pace;
pub mod poller;
pub mod server;
mod snapshot;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
pub use condition::Condition;
use condition::Life;
pub use pace::{AdminPace, DataPathPace};
pub use snapshot::{Pending, Phase, Snapshot};

use crate::args::Dynamic;
use crate::envoy::{AdminAnswer, AdminQuestion, ServerInfo};

/// Two refusals at least so far apart are Envoy's death; a single one may be an accident.
const DEATH: Duration = Duration::from_millis(100);
/// A data path that was there and has been silent for so long does not come back by itself (istio#50550).
const STUCK: Duration = Duration::from_secs(60);
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
    /// Our child was started.
    Started,
    /// Our child has ended.
    Exited,
    /// It will be started again.
    Restarting,
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
    /// A status that is no answer.
    BadStatus,
    /// Broken off, or not what Envoy says.
    BadBody,
}

/// What readiness is made of.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// Do clusters and listeners come over xDS?
    pub dynamic: Dynamic,
    /// Is the probe listener asked?
    pub data_path: bool,
    /// Is Envoy our child, so that we are told of its start and its end?
    pub child: bool,
    /// Does a drain leave readiness as it is?
    pub drain_keeps_ready: bool,
}

/// The state behind the snapshots: one Envoy after another.
#[derive(Debug)]
pub struct Ready {
    policy: Policy,
    life: Life,
    /// Grows with every start and every end of an Envoy: what was asked before is not about this one.
    generation: u32,
    epoch: u32,
    draining: bool,
    terminating: bool,
    /// Some Envoy has been live.
    was_live: bool,
    /// For people: the last observation of each channel, and when it was made.
    last: BTreeMap<&'static str, (String, Duration)>,
    snapshot: Snapshot,
}

impl Ready {
    /// Nothing is known yet. `now`: since the agent started.
    pub fn new(policy: Policy, now: Duration) -> Self {
        let life = Life::new();
        let snapshot = Snapshot::first(now);
        let mut ready = Self {
            policy,
            life,
            generation: 0,
            epoch: 1,
            draining: false,
            terminating: false,
            was_live: false,
            last: BTreeMap::new(),
            snapshot,
        };
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

    /// The probe listener's last answer was none that is good enough.
    pub fn data_path_failing(&self) -> bool {
        self.life.data_path.is_failing()
    }

    /// `workers_started` is hidden by a stats matcher, so that the data path stands for it.
    pub fn workers_hidden(&self) -> bool {
        self.life.workers_hidden
    }

    /// Is there anybody to ask? An Envoy of somebody else may be there any moment, our own child only once it is started.
    pub fn has_envoy(&self) -> bool {
        !self.policy.child || self.life.process
    }

    /// Was this Envoy ever ready?
    pub fn was_ready(&self) -> bool {
        self.life.was_ready && !self.life.exited
    }

    /// Was any Envoy ever live?
    pub fn was_live(&self) -> bool {
        self.was_live
    }

    /// The snapshot's JSON with what it follows from, for this machine alone: the last answer of each channel, and the policy.
    pub fn detailed(&self, now: Duration) -> Bytes {
        let mut json = self.snapshot.json(now);
        json["generation"] = self.generation.into();
        json["policy"] = format!("{:?}", self.policy).into();
        for (channel, (answer, at)) in &self.last {
            let seconds_ago = now.saturating_sub(*at).as_secs_f64();
            json["last"][*channel] = serde_json::json!({"answer": answer, "secondsAgo": seconds_ago});
        }
        format!("{json:#}\n").into()
    }

    /// Whether Envoy has to be replaced, and why; `admin`: for how long its admin port may be silent.
    pub fn alive(&self, admin: Option<Duration>, now: Duration) -> Result<(), &'static str> {
        let since = |since: Option<Duration>| since.map(|since| now.saturating_sub(since));
        if self.life.exited && !self.life.restarting {
            Err("envoy exited")
        } else if since(self.life.admin_silent).zip(admin).is_some_and(|(silent, most)| silent >= most) {
            Err("envoy admin stuck")
        } else if self.life.was_ready
            && since(self.life.data_path.silent_since).is_some_and(|silent| silent >= STUCK)
        {
            Err("probe listener not answering")
        } else {
            Ok(())
        }
    }

    /// Takes one observation; `generation` is that of the question's beginning.
    pub fn observe(&mut self, generation: u32, observation: Observation, now: Duration) {
        match &observation {
            Observation::Admin(answer) => self.last.insert("admin", (format!("{answer:?}"), now)),
            Observation::DataPath(answer) => self.last.insert("data-path", (format!("{answer:?}"), now)),
            _ => None,
        };
        match observation {
            Observation::Draining => self.draining = true,
            Observation::Terminating => self.terminating = true,
            Observation::Started => {
                if self.life.exited {
                    self.next_epoch();
                }
                self.generation += 1;
                self.life.process = true;
            }
            Observation::Exited => {
                self.generation += 1;
                self.life = Life::after(&self.life);
            }
            Observation::Restarting => self.life.restarting = true,
            // Somebody answers in the name of a child that is not there.
            _ if generation != self.generation || !self.has_envoy() => return,
            Observation::Accepted(channel) => self.accepted(channel),
            Observation::Admin(Ok(answer)) => {
                self.life.admin_silent = None;
                self.accepted(Channel::Admin);
                self.admin(answer, now);
            }
            Observation::Admin(Err(failure)) => {
                self.life.admin_silent.get_or_insert(now);
                if failure == Failure::Refused {
                    self.refused(Channel::Admin, now);
                }
            }
            Observation::DataPath(answer) => {
                if answer.is_ok() {
                    self.accepted(Channel::DataPath);
                }
                self.life.data_path.observe(answer, self.life.was_ready, now);
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
        if !self.policy.child && self.life.process && channel == witness && now.saturating_sub(first) >= DEATH
        {
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
        if let Some((uptime, at)) = self.life.uptime
            && !self.policy.child
        {
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
        self.was_live |= self.life.is_live();
        let mut pending = self.life.pending(self.policy);
        let draining = self.draining && !self.policy.drain_keeps_ready;
        if draining {
            pending.push((Condition::Drain, "draining".to_owned()));
        }
        if self.terminating {
            pending.push((Condition::Shutdown, "terminating".to_owned()));
        }
        let met = self.life.met(self.policy, draining, self.terminating);
        let phase = match () {
            () if self.terminating => Phase::Terminating,
            () if self.draining => Phase::Draining,
            () if pending.is_empty() => Phase::Ready,
            () if self.life.was_ready => Phase::NotReady,
            () => Phase::Starting,
        };
        self.life.was_ready |= pending.is_empty();
        self.snapshot = self.snapshot.next(phase, pending, met, self.epoch, self.life.version.clone(), now);
    }
}

#[cfg(test)]
mod tests;
