//! The state of a workload's health: outcomes go in, one after another, and now and then it flips.
//!
//! Pure: no clock. Thresholds as kubelet has them; what flips stays until as many outcomes of the other kind came in a row.

mod outcome;

use std::str::FromStr;

pub use outcome::{HealthReason, Outcome, Unhealthy};

use crate::workload_probe::Thresholds;

/// What is known of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// No verdict yet, or nothing probes.
    Unknown,
    /// Traffic may come.
    Healthy,
    /// It may not.
    Unhealthy,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Unknown, Self::Healthy, Self::Unhealthy];

    /// As it crosses the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::Healthy => "Healthy",
            Self::Unhealthy => "Unhealthy",
        }
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        formatter.write_str(self.word())
    }
}

/// A word that is no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be Unknown, Healthy or Unhealthy")]
pub struct NoState;

impl FromStr for State {
    type Err = NoState;

    fn from_str(text: &str) -> Result<Self, NoState> {
        Self::ALL.into_iter().find(|state| state.word() == text).ok_or(NoState)
    }
}

/// Why no outcome counts any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The agent drains.
    Draining,
    /// The agent is about to end.
    Terminating,
}

/// A change that others have to hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flip {
    /// Before.
    pub from: State,
    /// Now; may be the same with another reason (a probe that is removed before its first verdict).
    pub to: State,
    /// The generation that begins with it.
    pub generation: u64,
}

/// The threshold state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthState {
    /// Absent: nothing probes.
    thresholds: Option<Thresholds>,
    state: State,
    reason: HealthReason,
    message: String,
    generation: u64,
    /// Consecutive successes and failures that may still lead to a flip.
    ok: u32,
    bad: u32,
    is_final: bool,
}

impl HealthState {
    /// Nothing is known. `thresholds`: of the probe, if there is one.
    pub fn new(thresholds: Option<Thresholds>) -> Self {
        let reason = if thresholds.is_some() { HealthReason::AwaitingVerdict } else { HealthReason::NoProbe };
        Self {
            thresholds,
            state: State::Unknown,
            reason,
            message: reason.text().to_owned(),
            generation: 0,
            ok: 0,
            bad: 0,
            is_final: false,
        }
    }

    /// A probe came to its end. Without a probe, and after the end, nothing follows from that.
    pub fn observe(&mut self, outcome: Outcome) -> Option<Flip> {
        let thresholds = self.thresholds.filter(|_| !self.is_final)?;
        match outcome {
            Outcome::Healthy => {
                self.bad = 0;
                self.ok = self.ok.saturating_add(1);
                if self.state == State::Healthy {
                    self.ok = 0;
                    return None;
                }
                (self.ok >= thresholds.success.get()).then(|| {
                    let reason = HealthReason::ProbeSucceeded;
                    self.flip(State::Healthy, reason, reason.text().to_owned())
                })
            }
            Outcome::Unhealthy(unhealthy) => {
                self.ok = 0;
                self.bad = self.bad.saturating_add(1);
                let (reason, text) = unhealthy.into_parts();
                if self.state == State::Unhealthy {
                    self.bad = 0;
                    (self.reason, self.message) = (reason, text);
                    return None;
                }
                (self.bad >= thresholds.failure.get()).then(|| self.flip(State::Unhealthy, reason, text))
            }
        }
    }

    /// Another probe, or none any more. Another one lets the state stand: an edit must not flap.
    pub fn set_probe(&mut self, thresholds: Option<Thresholds>) -> Option<Flip> {
        if self.is_final {
            return None;
        }
        (self.ok, self.bad) = (0, 0);
        let before = std::mem::replace(&mut self.thresholds, thresholds);
        match (before, thresholds) {
            (Some(_), None) => {
                let reason = HealthReason::NoProbe;
                Some(self.flip(State::Unknown, reason, reason.text().to_owned()))
            }
            (None, Some(_)) => {
                self.reason = HealthReason::AwaitingVerdict;
                self.message = self.reason.text().to_owned();
                None
            }
            _ => None,
        }
    }

    /// Unhealthy for good. A drain may still be followed by the end.
    pub fn end(&mut self, end: End) -> Option<Flip> {
        let reason = match end {
            End::Draining if self.is_final => return None,
            End::Draining => HealthReason::Draining,
            End::Terminating if self.reason == HealthReason::Terminating => return None,
            End::Terminating => HealthReason::Terminating,
        };
        self.is_final = true;
        Some(self.flip(State::Unhealthy, reason, reason.text().to_owned()))
    }

    /// The state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Why.
    pub fn reason(&self) -> HealthReason {
        self.reason
    }

    /// The same in a line of printable ASCII, at most 256 bytes, never empty.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Number of flips.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether nothing can change any more but a drain into an end.
    pub fn is_final(&self) -> bool {
        self.is_final
    }

    /// Consecutive successes and failures that count towards the next flip.
    pub fn counters(&self) -> (u32, u32) {
        (self.ok, self.bad)
    }

    fn flip(&mut self, to: State, reason: HealthReason, message: String) -> Flip {
        let from = std::mem::replace(&mut self.state, to);
        (self.reason, self.message) = (reason, message);
        (self.ok, self.bad) = (0, 0);
        self.generation = self.generation.saturating_add(1);
        Flip { from, to, generation: self.generation }
    }
}

#[cfg(test)]
mod tests;
