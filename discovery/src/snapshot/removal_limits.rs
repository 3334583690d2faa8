//! Decides which silent or unhealthy machines of a service stay endpoints.
//!
//! If many machines become silent within a short time, the network, a certificate or this server is
//! more likely the cause than the machines, and removing them all would end the service.
//!
//! One client can have all addresses of a network, so machines of one source count only up to a share:
//! such a client alone exceeds no limit, and does not hide that other machines do.

mod shares;

use std::collections::BTreeSet;

use crate::entries::{Presence, Preserved, RemovalLimits, Timestamp, Workload};
use crate::objects::Key;
use shares::{Counts, Shares};

/// Fewer silent machines than this are always removed.
const MIN_SILENT: usize = 3;

impl RemovalLimits {
    fn is_exceeded(&self, silent: &Counts, shares: &Shares) -> bool {
        silent.all() >= MIN_SILENT
            && silent.in_shares() >= MIN_SILENT.min(shares.sources())
            && silent.in_shares().saturating_mul(100) > times(shares.machines(), self.max_silent_percent)
    }

    /// Returns the machines of a service that are preserved as endpoints although they are silent or unhealthy.
    /// `preserved_before` are those that self-preservation kept in the previous snapshot.
    pub(super) fn preserved<'a>(
        &self,
        machines: Vec<&'a Workload>,
        preserved_before: &dyn Fn(&Key) -> bool,
        now: Timestamp,
    ) -> Vec<(&'a Key, Preserved)> {
        let shares = Shares::of(&machines, self.max_silent_percent);
        let in_window = self.silent_at_once(&machines, &shares, now);
        let silent = machines.iter().filter(|machine| matches!(machine.presence, Presence::Silent(_)));
        let silent = silent.filter(|machine| !machine.served).filter_map(|machine| {
            let preserved = if in_window.contains(&machine.key) {
                Preserved::Silent
            } else if preserved_before(&machine.key) {
                Preserved::Recovering
            } else if machines.len() >= MIN_SILENT {
                Preserved::Removed
            } else {
                return None;
            };
            Some((&machine.key, preserved))
        });
        silent.chain(self.over_the_unhealthy_limit(&machines, &shares)).collect()
    }

    /// Returns the silent machines of each window in which too many became silent. Machines whose
    /// stream was lost count as of now, and so do stored times in the future, which a changed system
    /// clock leaves behind.
    fn silent_at_once<'a>(
        &self,
        machines: &[&'a Workload],
        shares: &Shares,
        now: Timestamp,
    ) -> BTreeSet<&'a Key> {
        let point = |machine: &&'a Workload| match machine.presence {
            Presence::Silent(since) => Some((since.min(now), *machine)),
            Presence::Missing => Some((now, *machine)),
            Presence::Reporting => None,
        };
        let mut points: Vec<(Timestamp, &Workload)> = machines.iter().filter_map(point).collect();
        points.sort_unstable_by_key(|(at, machine)| (*at, &machine.key));
        let mut preserved = BTreeSet::new();
        let mut silent = Counts::new(shares);
        let (mut end, mut preserved_to) = (0, 0);
        for (start, (first, machine)) in points.iter().enumerate() {
            while let Some((at, next)) = points.get(end)
                && at.minus(self.window) <= *first
            {
                silent.add(next);
                end += 1;
            }
            if self.is_exceeded(&silent, shares) {
                preserved
                    .extend(points[preserved_to.max(start)..end].iter().map(|(_, machine)| &machine.key));
                preserved_to = end;
            }
            silent.remove(machine);
        }
        preserved
    }

    /// Of the unhealthy machines, those that became so first are removed, up to the limit. Those over the
    /// share of their source are removed too.
    fn over_the_unhealthy_limit<'a>(
        &self,
        machines: &[&'a Workload],
        shares: &Shares,
    ) -> Vec<(&'a Key, Preserved)> {
        let Some(percent) = self.max_unhealthy_percent else { return Vec::new() };
        let is_unhealthy =
            |machine: &&&Workload| machine.preservable && machine.presence == Presence::Reporting;
        let mut unhealthy: Vec<&Workload> = machines.iter().filter(is_unhealthy).copied().collect();
        unhealthy.sort_by_key(|machine| machine.unserved_since);
        let mut counts = Counts::new(shares);
        unhealthy.retain(|machine| counts.add(machine));
        let removed = times(shares.machines(), percent) / 100;
        unhealthy.into_iter().skip(removed).map(|machine| (&machine.key, Preserved::Unhealthy)).collect()
    }
}

fn times(number: usize, percent: u8) -> usize {
    number.saturating_mul(usize::from(percent))
}

#[cfg(test)]
mod tests;
