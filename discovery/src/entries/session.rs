//! The session of an entry: which streams its workload has, which of them reports, and what its
//! agent has reported.

use std::collections::{BTreeSet, VecDeque};
use std::mem;
use std::net::SocketAddr;
use std::time::Duration;

use workload_health::text::printable;
use workload_health::{HealthReport, State};

use super::{ReportOutcome, StreamId};

/// More reporting streams than this within a minute mean that two machines report on one entry.
const MAX_REPLACEMENTS_PER_MINUTE: usize = 5;
const MINUTE: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct Session {
    /// All streams of the workload, including its Envoy's.
    streams: BTreeSet<StreamId>,
    /// The stream whose reports are applied.
    reporter: Option<StreamId>,
    /// The agent that reported last.
    agent: Option<Agent>,
    last_report: Option<LastReport>,
    /// When the reporting stream was replaced within the last minute.
    replacements: VecDeque<Duration>,
}

/// Peer of the current or the last session.
#[derive(Clone, Debug)]
pub(super) struct Agent {
    pub(super) stream: StreamId,
    pub(super) app_health: bool,
    pub(super) version: Option<String>,
    pub(super) peer: SocketAddr,
    pub(super) session: u64,
    pub(super) accepted: NewestReport,
    pub(super) last_report: Option<Duration>,
    pub(super) probe_version: Option<String>,
    pub(super) probe_nack: Option<String>,
}

/// Epoch, generation and state of the newest report of a stream or session.
#[derive(Clone, Debug, Default)]
pub(super) struct NewestReport(Option<(String, u64, State)>);

/// Kind of the last report of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastReport {
    Verdict,
    Awaiting,
    NoProbe,
}

/// The reporting stream that a newer one has replaced.
#[derive(Clone, Copy, Debug)]
pub(super) struct Replaced {
    pub(super) stream: StreamId,
    /// True if the reporting stream was replaced too often.
    pub(super) is_duplicate: bool,
}

impl Session {
    pub(super) fn is_connected(&self) -> bool {
        !self.streams.is_empty()
    }

    pub(super) fn streams(&self) -> &BTreeSet<StreamId> {
        &self.streams
    }

    pub(super) fn reporter(&self) -> Option<StreamId> {
        self.reporter
    }

    pub(super) fn agent(&self) -> Option<&Agent> {
        self.agent.as_ref()
    }

    pub(super) fn last_report(&self) -> Option<LastReport> {
        self.last_report
    }

    pub(super) fn attach(&mut self, stream: StreamId) {
        self.streams.insert(stream);
    }

    /// Removes a stream. Returns whether it was the reporting one, or `None` if it is not one of
    /// this entry.
    pub(super) fn detach(&mut self, stream: StreamId) -> Option<bool> {
        let was_reporter = || self.reporter.take_if(|reporter| *reporter == stream).is_some();
        self.streams.remove(&stream).then(was_reporter)
    }

    pub(super) fn detach_reporter(&mut self) -> Option<StreamId> {
        let reporter = self.reporter.take()?;
        self.streams.remove(&reporter);
        Some(reporter)
    }

    pub(super) fn detach_all(&mut self) -> BTreeSet<StreamId> {
        self.reporter = None;
        mem::take(&mut self.streams)
    }

    /// Makes the stream of this agent the reporting one.
    pub(super) fn begin(&mut self, agent: Agent, now: Duration) -> Option<Replaced> {
        let stream = agent.stream;
        self.agent = Some(agent);
        self.last_report = None;
        let old = self.reporter.replace(stream).filter(|old| *old != stream)?;
        self.streams.remove(&old);
        Some(Replaced { stream: old, is_duplicate: self.count_replacement(now) })
    }

    /// Counts a replaced reporting stream. Returns true if there were too many.
    fn count_replacement(&mut self, now: Duration) -> bool {
        self.replacements.retain(|at| now.saturating_sub(*at) < MINUTE);
        self.replacements.push_back(now);
        let is_duplicate = self.replacements.len() > MAX_REPLACEMENTS_PER_MINUTE;
        if is_duplicate {
            // Counting starts again, so that not every further replacement emits the event.
            self.replacements.clear();
        }
        is_duplicate
    }

    /// Gives the session another number. Returns true if its agent has not reported yet.
    pub(super) fn renumber(&mut self, session: u64) -> bool {
        let Some(agent) = &mut self.agent else { return false };
        agent.session = session;
        agent.last_report.is_none()
    }

    /// Decides whether a report of an app-health agent counts.
    pub(super) fn accept(&mut self, report: &HealthReport, now: Duration) -> ReportOutcome {
        let Some(agent) = &mut self.agent else { return ReportOutcome::Stale };
        let outcome = agent.accepted.accept(report);
        if outcome != ReportOutcome::Stale {
            agent.last_report = Some(now);
        }
        outcome
    }

    /// Decides whether an Istio health report counts, which has no epoch or generation. An app-health
    /// agent sends such reports until it receives the server's hello; they count until its first
    /// [`HealthReport`]. Returns [`ReportOutcome::Applied`] for the first one.
    pub(super) fn accept_istio(&mut self, now: Duration) -> ReportOutcome {
        let Some(agent) = &mut self.agent else { return ReportOutcome::Stale };
        if agent.app_health && agent.accepted.get().is_some() {
            return ReportOutcome::Stale;
        }
        match agent.last_report.replace(now) {
            None => ReportOutcome::Applied,
            Some(_) => ReportOutcome::Repeated,
        }
    }

    pub(super) fn set_last_report(&mut self, kind: LastReport) {
        self.last_report = Some(kind);
    }

    pub(super) fn probe_acked(&mut self, version: &str) {
        let Some(agent) = &mut self.agent else { return };
        (agent.probe_version, agent.probe_nack) = (Some(printable(version)), None);
    }

    /// Returns the printable text of a rejection unless it is known.
    pub(super) fn probe_nacked(&mut self, text: &str) -> Option<String> {
        let agent = self.agent.as_mut()?;
        let text = printable(text);
        let old = agent.probe_nack.replace(text.clone());
        (old.as_ref() != Some(&text)).then_some(text)
    }
}

impl NewestReport {
    /// Accepts a report unless it is stale: the first one counts, then only newer generations of the
    /// same epoch. An equal generation is a repetition.
    pub(super) fn accept(&mut self, report: &HealthReport) -> ReportOutcome {
        let outcome = match &self.0 {
            None => ReportOutcome::Applied,
            Some((epoch, ..)) if *epoch != report.epoch => ReportOutcome::Stale,
            Some((_, generation, _)) if report.generation > *generation => ReportOutcome::Applied,
            Some((_, generation, state)) if (*generation, *state) == (report.generation, report.state) => {
                ReportOutcome::Repeated
            }
            Some(_) => ReportOutcome::Stale,
        };
        if outcome != ReportOutcome::Stale {
            self.0 = Some((report.epoch.clone(), report.generation, report.state));
        }
        outcome
    }

    /// Returns epoch and generation.
    pub(super) fn get(&self) -> Option<(&str, u64)> {
        self.0.as_ref().map(|(epoch, generation, _)| (epoch.as_str(), *generation))
    }
}
