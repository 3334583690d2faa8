//! State machine of an Envoy drain: it decides what to do next, at which time, and when the drain
//! is over. It reads no clock; all times are durations since the agent's start.

use std::time::Duration;

use readiness::listeners::DrainScope;

const MAX_ATTEMPTS: u8 = 3;
const COUNT_INTERVAL: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrainSettings {
    /// Minimum time for which Envoy keeps serving after SIGTERM; the deadline limits it.
    pub minimum: Duration,
    /// Time after which the drain ends, even if connections are open.
    pub deadline: Duration,
    pub scope: DrainScope,
    /// True if a drain does not change the readiness answer on port 15021.
    pub keeps_ready: bool,
}

#[derive(Debug)]
pub struct Drain {
    settings: DrainSettings,
    started: Option<Duration>,
    attempts_left: u8,
    /// Earliest time at which Envoy may stop serving. `Some` means that the agent exits after the
    /// drain.
    shutdown_not_before: Option<Duration>,
    connections: Connections,
}

#[derive(Debug, Clone, Copy)]
enum Connections {
    NotQueried,
    Unknown,
    Open(Duration),
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Do nothing until the next event.
    Idle,
    SendDrain,
    CountConnections,
    WaitUntil(Duration),
    End,
}

impl Drain {
    pub fn new(settings: DrainSettings) -> Self {
        Self {
            settings,
            started: None,
            attempts_left: MAX_ATTEMPTS,
            shutdown_not_before: None,
            connections: Connections::NotQueried,
        }
    }

    /// Starts the drain for `POST /drain`; the agent keeps running. Repeated calls have no effect.
    pub fn begin(&mut self, now: Duration) {
        self.started.get_or_insert(now);
    }

    /// Starts the drain for SIGTERM; the agent exits when the drain is over. After `POST /drain`
    /// the minimum does not apply, because with native sidecars the application containers have
    /// exited by then.
    pub fn begin_shutdown(&mut self, now: Duration) {
        let minimum = if self.started.is_some() { Duration::ZERO } else { self.settings.minimum };
        self.begin(now);
        self.shutdown_not_before.get_or_insert(now + minimum);
    }

    /// Reverses the drain of `POST /drain`. Returns whether there was one, or `None` if the agent exits
    /// after the drain, which cannot be reversed.
    pub fn cancel(&mut self) -> Option<bool> {
        if self.is_shutting_down() {
            return None;
        }
        let was_draining = self.started.is_some();
        *self = Self::new(self.settings);
        Some(was_draining)
    }

    pub fn is_shutting_down(&self) -> bool {
        self.shutdown_not_before.is_some()
    }

    pub fn on_drain_response(&mut self, accepted: bool) {
        self.attempts_left = if accepted { 0 } else { self.attempts_left.saturating_sub(1) };
    }

    /// Records the application's open connections; `None` means that Envoy returned no statistics.
    pub fn on_connection_count(&mut self, connections: Option<u64>, now: Duration) {
        self.connections = match connections {
            None => Connections::Unknown,
            Some(0) => Connections::None,
            Some(_) => Connections::Open(now),
        };
    }

    pub fn next(&self, now: Duration) -> Step {
        let Some(started) = self.started else { return Step::Idle };
        let deadline = started + self.settings.deadline;
        match (self.shutdown_not_before, self.connections) {
            (Some(_), _) if now >= deadline => Step::End,
            _ if self.attempts_left > 0 => Step::SendDrain,
            (None, _) => Step::Idle,
            (Some(minimum), _) if now < minimum => Step::WaitUntil(minimum.min(deadline)),
            (Some(_), Connections::NotQueried) => Step::CountConnections,
            (Some(_), Connections::Unknown | Connections::None) => Step::End,
            (Some(_), Connections::Open(queried)) if now >= queried + COUNT_INTERVAL => {
                Step::CountConnections
            }
            (Some(_), Connections::Open(queried)) => {
                Step::WaitUntil((queried + COUNT_INTERVAL).min(deadline))
            }
        }
    }
}

#[cfg(test)]
mod tests;
