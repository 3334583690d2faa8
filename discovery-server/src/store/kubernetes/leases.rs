//! Decides which replicas are alive by when their Lease was last seen to change. Only the local
//! monotonic clock is used: clocks of machines differ, and the times in a Lease are informative.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub const RENEWAL: Duration = Duration::from_secs(10);
/// How long a Lease stays valid after it was seen to change.
pub const VALIDITY: Duration = Duration::from_secs(30);
/// How often all Leases are read; an expired Lease is noticed this much later at most.
pub const READ_INTERVAL: Duration = Duration::from_secs(3);
/// After a longer gap than this between reads, the validity of every Lease starts again, since its
/// changes may have been missed.
const MAX_READ_GAP: Duration = Duration::from_secs(10);
/// A Lease that has not changed for this long is deleted: its Pod will not start again under this
/// name.
const STALE: Duration = Duration::from_secs(600);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Name of the Lease and of its replica, as in the annotation `workloadController`.
    pub instance: String,
    /// `resourceVersion` of the Lease, opaque.
    pub version: String,
    /// True if the replica released its Lease on shutdown.
    pub released: bool,
}

/// Result of reading the Leases.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Replicas {
    /// Instances with a valid Lease; always includes this one.
    pub alive: BTreeSet<String>,
    /// Instances that released their Lease.
    pub released: BTreeSet<String>,
    /// Leases to delete, with the version that was read.
    pub stale: Vec<(String, String)>,
}

/// Versions of all Leases, and when they changed.
#[derive(Debug)]
pub struct Leases {
    instance: String,
    seen: BTreeMap<String, ObservedLease>,
    last_read: Option<Duration>,
}

#[derive(Debug)]
struct ObservedLease {
    version: String,
    released: bool,
    changed: Duration,
}

impl Leases {
    pub fn new(instance: String) -> Self {
        Self { instance, seen: BTreeMap::new(), last_read: None }
    }

    /// Processes all Leases as read at `now`. A Lease that disappeared expires as if it still
    /// existed: a live replica creates it again.
    pub fn update(&mut self, now: Duration, leases: Vec<Lease>) -> Replicas {
        let is_gap = self.last_read.is_some_and(|last_read| now.saturating_sub(last_read) > MAX_READ_GAP);
        self.last_read = Some(now);
        if is_gap {
            self.seen.values_mut().for_each(|seen| seen.changed = now);
        }
        let mut present = BTreeSet::new();
        for Lease { instance, version, released } in leases {
            present.insert(instance.clone());
            let seen = self.seen.entry(instance).or_insert_with(|| ObservedLease {
                version: version.clone(),
                released,
                changed: now,
            });
            if seen.version != version {
                *seen = ObservedLease { version, released, changed: now };
            }
        }
        self.seen.retain(|instance, seen| {
            present.contains(instance) || now.saturating_sub(seen.changed) < VALIDITY
        });
        let mut replicas = Replicas::default();
        replicas.alive.insert(self.instance.clone());
        for (instance, seen) in self.seen.iter().filter(|(instance, _)| **instance != self.instance) {
            let age = now.saturating_sub(seen.changed);
            if seen.released {
                replicas.released.insert(instance.clone());
            }
            if !seen.released && age < VALIDITY {
                replicas.alive.insert(instance.clone());
            } else if age >= STALE {
                replicas.stale.push((instance.clone(), seen.version.clone()));
            }
        }
        replicas
    }
}

/// A replica that has not renewed its Lease for this long sends its agents to other replicas, which
/// take its entries over when the Lease expires.
const ISOLATED_AFTER: Duration = Duration::from_secs(VALIDITY.as_secs() / 2);

/// How often the streams of agents that connect to an isolated replica again are ended.
const ISOLATED_AGAIN: Duration = Duration::from_secs(60);

/// Whether this replica can show the others that it is alive.
#[derive(Debug, Default)]
pub struct Isolation {
    /// When the streams of its agents were last ended.
    ended: Option<Duration>,
}

impl Isolation {
    /// Processes that the Lease was last renewed at `renewed`. Returns true if the streams of this
    /// replica's agents must end now; an agent may have connected to this replica again since.
    pub fn update(&mut self, now: Duration, renewed: Duration) -> bool {
        if now.saturating_sub(renewed) < ISOLATED_AFTER {
            self.ended = None;
            return false;
        }
        let is_due = self.ended.is_none_or(|ended| now.saturating_sub(ended) >= ISOLATED_AGAIN);
        if is_due {
            self.ended = Some(now);
        }
        is_due
    }

    /// True until the Lease is renewed.
    pub fn is_isolated(&self) -> bool {
        self.ended.is_some()
    }
}

#[cfg(test)]
mod tests;
