//! The results of probes between two queries of Envoy's statistics, kept while a page is open.

use std::collections::{BTreeMap, VecDeque};

use probe::Reason;

use super::envoy_stats::{EnvoyStats, ProbeCounters, ProbeName};

/// Number of results that are kept for each probe.
const RESULTS: usize = 60;
/// Number of probes whose results are kept.
pub(super) const PROBES: usize = 200;

/// The newest statistics, and the results that were counted since the first ones.
#[derive(Debug, Default)]
pub(super) struct ProbeHistory {
    stats: EnvoyStats,
    /// Number of the Envoy process that has these statistics; `None` before the first ones.
    epoch: Option<u32>,
    results: BTreeMap<ProbeName, VecDeque<Reason>>,
}

impl ProbeHistory {
    /// Records the statistics of an Envoy process. The first ones have no earlier ones to compare with;
    /// those of a new process count from zero.
    pub(super) fn update(&mut self, stats: EnvoyStats, epoch: u32) {
        let before = std::mem::replace(&mut self.stats, stats);
        match self.epoch.replace(epoch) {
            None => {}
            Some(same) if same == epoch => self.record(&before),
            Some(_) => self.record(&EnvoyStats::default()),
        }
    }

    fn record(&mut self, before: &EnvoyStats) {
        let none = ProbeCounters::default();
        for (name, after) in self.stats.probes.iter().take(PROBES) {
            let before = before.probes.get(name).unwrap_or(&none);
            let mut added: Vec<(Reason, u64)> = after
                .reasons
                .iter()
                .map(|(reason, count)| {
                    (*reason, count.saturating_sub(before.reasons.get(reason).copied().unwrap_or(0)))
                })
                .collect();
            // The order within one interval is unknown, except that the last result is the verdict.
            added.sort_by_key(|(reason, _)| after.success == Some(reason.is_success()));
            let results = self.results.entry(name.clone()).or_default();
            for (reason, count) in added {
                let count = usize::try_from(count).unwrap_or(RESULTS).min(RESULTS);
                results.extend(std::iter::repeat_n(reason, count));
            }
            results.drain(..results.len().saturating_sub(RESULTS));
        }
    }

    pub(super) fn stats(&self) -> &EnvoyStats {
        &self.stats
    }

    /// Returns the last results as runs of equal ones, oldest first.
    pub(super) fn results(&self, name: &ProbeName) -> Vec<(Reason, u32)> {
        let mut runs: Vec<(Reason, u32)> = Vec::new();
        for reason in self.results.get(name).into_iter().flatten() {
            match runs.last_mut() {
                Some((last, count)) if last == reason => *count += 1,
                _ => runs.push((*reason, 1)),
            }
        }
        runs
    }

    /// Returns the reason of the last result: of the last counted one, or the only reason that Envoy
    /// has ever counted.
    pub(super) fn last_reason(&self, name: &ProbeName) -> Option<Reason> {
        let last = self.results.get(name).and_then(|results| results.back().copied());
        last.or_else(|| {
            let counters = self.stats.probes.get(name)?;
            let mut counted = counters.reasons.iter().filter(|(_, count)| **count > 0);
            counted.next().filter(|_| counted.next().is_none()).map(|(reason, _)| *reason)
        })
    }
}

#[cfg(test)]
mod tests;
