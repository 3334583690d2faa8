//! Decides whether a report of an app-health agent counts.

use workload_health::{HealthReport, State};

use super::ReportOutcome;

/// Epoch, generation and state of the newest report of a stream or session.
#[derive(Clone, Debug, Default)]
pub(super) struct NewestReport(Option<(String, u64, State)>);

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
