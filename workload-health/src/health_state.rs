//! The state machine of a workload's health: it takes probe outcomes, and changes the state when a
//! threshold is reached.
//!
//! The thresholds work as in kubelet: the state stays until the configured number of consecutive
//! opposite outcomes is reached. There is no clock.

mod outcome;

use std::str::FromStr;

pub use outcome::{HealthReason, Outcome, Unhealthy};

use crate::workload_probe::Thresholds;

enum_table::table! {
    #[derive(PartialOrd, Ord)]
    pub enum State(
        /// Returns the name of the state as in reports.
        word: &'static str,
    ) {
        /// No threshold has been reached yet, or no probe is configured.
        Unknown("Unknown"),
        /// The workload may receive traffic.
        Healthy("Healthy"),
        /// The workload must not receive traffic.
        Unhealthy("Unhealthy"),
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        formatter.write_str(self.word())
    }
}

/// The error for a text that is not the name of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be Unknown, Healthy or Unhealthy")]
pub struct ParseStateError;

impl FromStr for State {
    type Err = ParseStateError;

    fn from_str(text: &str) -> Result<Self, ParseStateError> {
        Self::ALL.into_iter().find(|state| state.word() == text).ok_or(ParseStateError)
    }
}

/// The reason for which probes no longer count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    Draining,
    Terminating,
}

/// A change of the state that has to be reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    pub from: State,
    /// The state after the change. It equals the previous one if only the reason has changed (a probe was
    /// removed before its first result).
    pub to: State,
    /// The number of changes so far, including this one.
    pub generation: u64,
}

/// What is decided about the health of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub state: State,
    pub reason: HealthReason,
    /// A description of the reason: one line of 1 to 256 bytes of printable ASCII.
    pub message: String,
    /// The number of state changes so far.
    pub generation: u64,
}

/// The verdict and the counters of consecutive outcomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthState {
    /// The thresholds; `None` if no probe is configured.
    thresholds: Option<Thresholds>,
    verdict: Verdict,
    /// The number of consecutive successes that count towards the next change; `failures` counts
    /// failures.
    successes: u32,
    failures: u32,
    is_final: bool,
}

impl HealthState {
    /// Returns the state `Unknown`. `thresholds` are those of the probe, if there is one.
    pub fn new(thresholds: Option<Thresholds>) -> Self {
        let (state, reason) = (State::Unknown, without_verdict(thresholds));
        let verdict = Verdict { state, reason, message: reason.text().to_owned(), generation: 0 };
        Self { thresholds, verdict, successes: 0, failures: 0, is_final: false }
    }

    /// Records the outcome of a probe, and returns the change that it causes. Without a probe and
    /// after [`HealthState::shut_down`], an outcome changes nothing.
    pub fn observe(&mut self, outcome: Outcome) -> Option<Transition> {
        let thresholds = self.thresholds.filter(|_| !self.is_final)?;
        match outcome {
            Outcome::Healthy => {
                self.failures = 0;
                self.successes = self.successes.saturating_add(1);
                if self.verdict.state == State::Healthy {
                    self.successes = 0;
                    return None;
                }
                let reason = HealthReason::ProbeSucceeded;
                (self.successes >= thresholds.success.get())
                    .then(|| self.transition(State::Healthy, reason, reason.text()))
            }
            Outcome::Unhealthy(unhealthy) => {
                self.successes = 0;
                self.failures = self.failures.saturating_add(1);
                let (reason, text) = unhealthy.into_parts();
                if self.verdict.state == State::Unhealthy {
                    self.failures = 0;
                    (self.verdict.reason, self.verdict.message) = (reason, text);
                    return None;
                }
                (self.failures >= thresholds.failure.get())
                    .then(|| self.transition(State::Unhealthy, reason, text))
            }
        }
    }

    /// Sets the thresholds of a changed probe, or removes the probe. A changed probe keeps the
    /// state, so that an edit does not interrupt traffic.
    pub fn set_probe(&mut self, thresholds: Option<Thresholds>) -> Option<Transition> {
        if self.is_final {
            return None;
        }
        (self.successes, self.failures) = (0, 0);
        let before = std::mem::replace(&mut self.thresholds, thresholds);
        match (before, thresholds) {
            (Some(_), None) => {
                let reason = HealthReason::NoProbe;
                Some(self.transition(State::Unknown, reason, reason.text()))
            }
            (None, Some(_)) => {
                self.verdict.reason = HealthReason::AwaitingVerdict;
                self.verdict.message = self.verdict.reason.text().to_owned();
                None
            }
            _ => None,
        }
    }

    /// Sets the final state `Unhealthy`. Draining may still be followed by terminating.
    pub fn shut_down(&mut self, shutdown: Shutdown) -> Option<Transition> {
        let reason = match shutdown {
            Shutdown::Draining if self.is_final => return None,
            Shutdown::Draining => HealthReason::Draining,
            Shutdown::Terminating if self.verdict.reason == HealthReason::Terminating => return None,
            Shutdown::Terminating => HealthReason::Terminating,
        };
        self.is_final = true;
        Some(self.transition(State::Unhealthy, reason, reason.text()))
    }

    /// Reverses draining: the state is unknown until the probe has decided again.
    pub fn resume(&mut self) -> Option<Transition> {
        if self.verdict.reason != HealthReason::Draining {
            return None;
        }
        self.is_final = false;
        (self.successes, self.failures) = (0, 0);
        let reason = without_verdict(self.thresholds);
        Some(self.transition(State::Unknown, reason, reason.text()))
    }

    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Returns true after [`HealthState::shut_down`].
    pub fn is_final(&self) -> bool {
        self.is_final
    }

    /// Returns the numbers of consecutive successes and failures that count towards the next
    /// change.
    pub fn counters(&self) -> (u32, u32) {
        (self.successes, self.failures)
    }

    fn transition(&mut self, to: State, reason: HealthReason, message: impl Into<String>) -> Transition {
        let (from, generation) = (self.verdict.state, self.verdict.generation.saturating_add(1));
        self.verdict = Verdict { state: to, reason, message: message.into(), generation };
        (self.successes, self.failures) = (0, 0);
        Transition { from, to, generation }
    }
}

/// Returns the reason of the state `Unknown`.
fn without_verdict(thresholds: Option<Thresholds>) -> HealthReason {
    if thresholds.is_some() { HealthReason::AwaitingVerdict } else { HealthReason::NoProbe }
}

#[cfg(test)]
mod tests;
