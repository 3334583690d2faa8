//! The last starts and exits of Envoy, for display. No decision depends on them.

use std::collections::VecDeque;
use std::time::Duration;

use crate::{Condition, Snapshot};

/// Number of events that are kept.
const CAPACITY: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessEvent {
    /// Time since the agent's start.
    pub at: Duration,
    /// Number of the Envoy process, starting at 1.
    pub epoch: u32,
    pub kind: ProcessEventKind,
    /// Why Envoy exited; empty if it is not known.
    pub reason: String,
}

enum_table::table! {
    pub enum ProcessEventKind(word: &'static str) {
        Started("started"),
        Exited("exited"),
        /// An external Envoy was restarted so fast that the agent did not observe its exit.
        Restarted("restarted"),
    }
}

/// History of all Envoy processes, oldest event first.
#[derive(Debug, Default)]
pub struct ProcessHistory(VecDeque<ProcessEvent>);

impl ProcessHistory {
    /// Derives events from a change of the readiness snapshot.
    pub fn observe(&mut self, before: &Snapshot, after: &Snapshot, at: Duration) {
        let runs = |snapshot: &Snapshot| snapshot.met.iter().any(|(met, _)| *met == Condition::Process);
        let kind = match (runs(before), runs(after)) {
            (false, true) => ProcessEventKind::Started,
            (true, false) => ProcessEventKind::Exited,
            (true, true) if before.epoch != after.epoch => ProcessEventKind::Restarted,
            _ => return,
        };
        if self.0.len() == CAPACITY {
            self.0.pop_front();
        }
        self.0.push_back(ProcessEvent { at, epoch: after.epoch, kind, reason: String::new() });
    }

    /// Adds the reason of the exit that was observed last.
    pub fn explain_exit(&mut self, reason: String) {
        if let Some(event) = self.0.back_mut().filter(|event| event.kind == ProcessEventKind::Exited) {
            event.reason = reason;
        }
    }

    pub fn events(&self) -> Vec<ProcessEvent> {
        self.0.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests;
