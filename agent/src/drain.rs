//! State machine of an Envoy drain: it decides what to do next, at which time, and when the drain
//! is over. It reads no clock; all times are durations since the agent's start.

use std::time::Duration;

use crate::args::DrainScope;

/// Maximum number of attempts to send Envoy the drain request.
const TRIES: u8 = 3;
/// Interval between two queries for the number of open connections.
const COUNT: Duration = Duration::from_millis(500);

/// Parameters of a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Minimum time for which Envoy keeps serving after SIGTERM; the deadline limits it.
    pub minimum: Duration,
    /// Time after which the drain ends, even if connections are open.
    pub deadline: Duration,
    pub scope: DrainScope,
    /// True if a drain does not change the readiness answer on port 15021.
    pub keeps_ready: bool,
}

impl Settings {
    /// Returns the path for Envoy's admin interface. With `graceful`, open connections continue;
    /// with `skip_exit`, the listeners stay open, so that clients which do not know about the drain
    /// yet are not refused.
    pub fn path(&self) -> &'static str {
        match self.scope {
            DrainScope::Inbound => "/drain_listeners?graceful&skip_exit&inboundonly",
            DrainScope::All => "/drain_listeners?graceful&skip_exit",
        }
    }
}

#[derive(Debug)]
pub struct Drain {
    settings: Settings,
    /// Start of the drain.
    begun: Option<Duration>,
    tries_left: u8,
    /// Earliest time at which Envoy may stop serving. `Some` means that the agent exits after the
    /// drain.
    leaving: Option<Duration>,
    /// Open connections of the application.
    connections: Connections,
}

#[derive(Debug, Clone, Copy)]
enum Connections {
    NotAsked,
    Unknown,
    Open(Duration),
    None,
}

/// Next action for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Do nothing until the next event.
    Rest,
    /// Send Envoy the drain request.
    Tell,
    /// Query the number of open connections.
    Count,
    /// Do nothing until this time.
    Wait(Duration),
    End,
}

impl Drain {
    pub fn new(settings: Settings) -> Self {
        Self { settings, begun: None, tries_left: TRIES, leaving: None, connections: Connections::NotAsked }
    }

    /// Starts the drain for `POST /drain`; the agent keeps running. Repeated calls have no effect.
    pub fn begin(&mut self, now: Duration) {
        self.begun.get_or_insert(now);
    }

    /// Starts the drain for SIGTERM; the agent exits when the drain is over. After `POST /drain`
    /// the minimum does not apply, because with native sidecars the application containers have
    /// exited by then.
    pub fn leave(&mut self, now: Duration) {
        let minimum = if self.begun.is_some() { Duration::ZERO } else { self.settings.minimum };
        self.begin(now);
        self.leaving.get_or_insert(now + minimum);
    }

    /// Returns true if the agent exits after the drain.
    pub fn is_leaving(&self) -> bool {
        self.leaving.is_some()
    }

    /// Records whether Envoy accepted the drain request.
    pub fn told(&mut self, understood: bool) {
        self.tries_left = if understood { 0 } else { self.tries_left.saturating_sub(1) };
    }

    /// Records the application's open connections; `None` means that Envoy returned no statistics.
    pub fn counted(&mut self, connections: Option<u64>, now: Duration) {
        self.connections = match connections {
            None => Connections::Unknown,
            Some(0) => Connections::None,
            Some(_) => Connections::Open(now),
        };
    }

    /// Returns what to do at `now`.
    pub fn next(&self, now: Duration) -> Step {
        let Some(begun) = self.begun else { return Step::Rest };
        let deadline = begun + self.settings.deadline;
        match (self.leaving, self.connections) {
            (Some(_), _) if now >= deadline => Step::End,
            _ if self.tries_left > 0 => Step::Tell,
            (None, _) => Step::Rest,
            (Some(minimum), _) if now < minimum => Step::Wait(minimum.min(deadline)),
            (Some(_), Connections::NotAsked) => Step::Count,
            (Some(_), Connections::Unknown | Connections::None) => Step::End,
            (Some(_), Connections::Open(asked)) if now >= asked + COUNT => Step::Count,
            (Some(_), Connections::Open(asked)) => Step::Wait((asked + COUNT).min(deadline)),
        }
    }
}

#[cfg(test)]
mod tests;
