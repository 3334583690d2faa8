//! PURE. The drain of Envoy: what to do next, at which time, and when it is over. Time is an argument: since the agent's start.

use std::time::Duration;

use crate::args::DrainScope;

/// How often Envoy is told to drain before that is given up.
const TRIES: u8 = 3;
/// Between two questions about open connections.
const COUNT: Duration = Duration::from_millis(500);

/// How Envoy is drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Serves at least so long after SIGTERM; not longer than the deadline.
    pub minimum: Duration,
    /// Over after so long from the beginning, whatever is open.
    pub deadline: Duration,
    /// Which listeners.
    pub scope: DrainScope,
    /// 15021 stays as it is.
    pub keeps_ready: bool,
}

impl Settings {
    /// What the admin port is told. `graceful`: connections that are open go on; `skip_exit`: the listeners stay open, so that nobody
    /// who has not heard of it yet is refused.
    pub fn path(&self) -> &'static str {
        match self.scope {
            DrainScope::Inbound => "/drain_listeners?graceful&skip_exit&inboundonly",
            DrainScope::All => "/drain_listeners?graceful&skip_exit",
        }
    }
}

/// One drain, from its beginning to its end.
#[derive(Debug)]
pub struct Drain {
    settings: Settings,
    /// Since when `draining` is said.
    begun: Option<Duration>,
    tries_left: u8,
    /// Present: the agent will end after this; until when at least Envoy serves.
    leaving: Option<Duration>,
    /// Of the application; absent: not known.
    connections: Connections,
}

#[derive(Debug, Clone, Copy)]
enum Connections {
    NotAsked,
    Unknown,
    Open(Duration),
    None,
}

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing until something happens.
    Rest,
    /// Tell Envoy to drain its listeners.
    Tell,
    /// Ask how many connections are open.
    Count,
    /// Nothing until this time.
    Wait(Duration),
    /// The drain is over.
    End,
}

impl Drain {
    /// None is going on.
    pub fn new(settings: Settings) -> Self {
        Self { settings, begun: None, tries_left: TRIES, leaving: None, connections: Connections::NotAsked }
    }

    /// `POST /drain`: Envoy is drained, and the agent stays. Again: no effect.
    pub fn begin(&mut self, now: Duration) {
        self.begun.get_or_insert(now);
    }

    /// SIGTERM: the agent ends when the drain is over. After `POST /drain` the minimum is dropped: with native sidecars the
    /// applications are gone by then.
    pub fn leave(&mut self, now: Duration) {
        let minimum = if self.begun.is_some() { Duration::ZERO } else { self.settings.minimum };
        self.begin(now);
        self.leaving.get_or_insert(now + minimum);
    }

    /// Will the agent end?
    pub fn is_leaving(&self) -> bool {
        self.leaving.is_some()
    }

    /// Envoy was told: did it understand?
    pub fn told(&mut self, understood: bool) {
        self.tries_left = if understood { 0 } else { self.tries_left.saturating_sub(1) };
    }

    /// The application's open connections; `None`: there are no statistics to be had.
    pub fn counted(&mut self, connections: Option<u64>, now: Duration) {
        self.connections = match connections {
            None => Connections::Unknown,
            Some(0) => Connections::None,
            Some(_) => Connections::Open(now),
        };
    }

    /// What to do at `now`.
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
