//! How many machines of one source count.

use std::collections::HashMap;

use pacing::source::Source;

use super::times;
use crate::entries::Workload;

/// What the machines of a service count, if each source counts only up to its share. A machine without
/// a source counts as a source.
pub(super) struct Shares {
    share: usize,
    sources: usize,
    machines: usize,
}

impl Shares {
    /// The share is the largest one with which a source has at most `percent` of what counts, and at
    /// least one machine.
    pub(super) fn of(machines: &[&Workload], percent: u8) -> Self {
        let mut of_sources = HashMap::<Source, usize>::new();
        for source in machines.iter().filter_map(|machine| machine.source) {
            *of_sources.entry(source).or_default() += 1;
        }
        let without = machines.iter().filter(|machine| machine.source.is_none()).count();
        let sources = without + of_sources.len();
        let mut shares = Self { share: 1, sources, machines: sources };
        loop {
            let larger = of_sources.values().filter(|number| **number > shares.share).count();
            let counted = shares.machines + larger;
            if larger == 0 || (shares.share + 1).saturating_mul(100) > times(counted, percent) {
                return shares;
            }
            shares.share += 1;
            shares.machines = counted;
        }
    }

    pub(super) fn sources(&self) -> usize {
        self.sources
    }

    /// Returns the number of machines that count.
    pub(super) fn machines(&self) -> usize {
        self.machines
    }
}

/// Counts some of the machines.
pub(super) struct Counts {
    share: usize,
    all: usize,
    in_shares: usize,
    of_sources: HashMap<Source, usize>,
}

impl Counts {
    pub(super) fn new(shares: &Shares) -> Self {
        Self { share: shares.share, all: 0, in_shares: 0, of_sources: HashMap::new() }
    }

    /// Returns true if the machine is within the share of its source.
    pub(super) fn add(&mut self, machine: &Workload) -> bool {
        let of_source = machine.source.map_or(1, |source| {
            let number = self.of_sources.entry(source).or_default();
            *number += 1;
            *number
        });
        let counts = of_source <= self.share;
        self.all += 1;
        self.in_shares += usize::from(counts);
        counts
    }

    /// Removes a machine that was added.
    pub(super) fn remove(&mut self, machine: &Workload) {
        let of_source =
            machine.source.and_then(|source| self.of_sources.get_mut(&source)).map_or(1, |number| {
                *number -= 1;
                *number + 1
            });
        self.all -= 1;
        self.in_shares -= usize::from(of_source <= self.share);
    }

    pub(super) fn all(&self) -> usize {
        self.all
    }

    pub(super) fn in_shares(&self) -> usize {
        self.in_shares
    }
}
