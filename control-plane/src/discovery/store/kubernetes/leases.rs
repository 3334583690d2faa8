//! PURE. Which replicas live, judged by when their Lease was last seen to change. By one's own monotonic clock alone: clocks of
//! machines differ, and the times written in a Lease are for people.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How often a replica renews its Lease.
pub const RENEWAL: Duration = Duration::from_secs(10);
/// How long a Lease is valid after it was seen to change.
pub const VALIDITY: Duration = Duration::from_secs(30);
/// How often all are looked at, so that an end is noticed this much late at most.
pub const LOOK: Duration = Duration::from_secs(3);
/// Without a look for so long nobody is judged: who could not see others change says nothing of them.
const BLIND: Duration = Duration::from_secs(10);
/// A Lease unchanged for so long is rubbish of a Pod that does not come back under this name.
const STALE: Duration = Duration::from_secs(600);

/// A Lease as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Its name is its replica's: the instance in `workloadController`.
    pub instance: String,
    /// Of the object, opaque.
    pub version: String,
    /// Its replica ended by itself and says so.
    pub released: bool,
}

/// What a look says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Replicas {
    /// Instances with a valid Lease, oneself always among them.
    pub alive: BTreeSet<String>,
    /// Leases to delete, with the version that was judged.
    pub stale: Vec<(String, String)>,
}

/// What was seen of all Leases.
#[derive(Debug)]
pub struct Leases {
    instance: String,
    seen: BTreeMap<String, Seen>,
    looked: Option<Duration>,
}

#[derive(Debug)]
struct Seen {
    version: String,
    released: bool,
    changed: Duration,
}

impl Leases {
    /// `instance`: who asks.
    pub fn new(instance: String) -> Self {
        Self { instance, seen: BTreeMap::new(), looked: None }
    }

    /// All Leases as they are `now`. One that vanished runs out as if it were there: its replica makes it anew if it lives.
    pub fn look(&mut self, now: Duration, leases: Vec<Lease>) -> Replicas {
        let blind = self.looked.is_some_and(|looked| now.saturating_sub(looked) > BLIND);
        self.looked = Some(now);
        if blind {
            self.seen.values_mut().for_each(|seen| seen.changed = now);
        }
        let mut there = BTreeSet::new();
        for Lease { instance, version, released } in leases {
            there.insert(instance.clone());
            let seen = self.seen.entry(instance).or_insert_with(|| Seen {
                version: version.clone(),
                released,
                changed: now,
            });
            if seen.version != version {
                *seen = Seen { version, released, changed: now };
            }
        }
        self.seen
            .retain(|instance, seen| there.contains(instance) || now.saturating_sub(seen.changed) < VALIDITY);
        let mut replicas = Replicas::default();
        replicas.alive.insert(self.instance.clone());
        for (instance, seen) in self.seen.iter().filter(|(instance, _)| **instance != self.instance) {
            let age = now.saturating_sub(seen.changed);
            if !seen.released && age < VALIDITY {
                replicas.alive.insert(instance.clone());
            } else if age >= STALE {
                replicas.stale.push((instance.clone(), seen.version.clone()));
            }
        }
        replicas
    }
}

#[cfg(test)]
mod tests;
