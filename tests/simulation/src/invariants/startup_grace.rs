//! Checks the responses of a server that lost its store, to Envoys that have earlier endpoints.

use std::collections::{BTreeMap, BTreeSet};

use discovery::objects::Key;

use super::Invariants;
use crate::configuration;
use crate::plan::{GROUPS, Kind};

/// The endpoints of an Envoy by cluster.
type Endpoints = BTreeMap<String, BTreeSet<String>>;

impl Invariants {
    /// Checks that a server that lost its store removes only endpoints for which it has received a
    /// report.
    pub fn pushed_in_startup_grace(&mut self, before: &Endpoints, after: &Endpoints) {
        for (cluster, endpoints) in after {
            let Some(before) = before.get(cluster) else { continue };
            let missing = before.iter().filter(|address| !endpoints.contains(*address));
            let mut explained = missing.filter(|address| self.is_known(cluster, address)).count();
            // A flapping entry may have been counted as a member of the assignment.
            let hosts: BTreeSet<String> =
                self.hosts.iter().map(|host| configuration::address(*host)).collect();
            let strangers = hosts.iter().filter(|host| !before.contains(*host) && !endpoints.contains(*host));
            explained += strangers
                .filter(|host| self.members(cluster, host).any(|it| self.moving.contains(it)))
                .count();
            if endpoints.len() + explained < before.len() && !self.has_hostile_peer {
                self.violation.get_or_insert_with(|| {
                    format!("{cluster}: a server that lost its store changed {before:?} to {endpoints:?}")
                });
            }
        }
    }

    /// Returns whether a report on this endpoint was received, or the operator removed it.
    fn is_known(&self, cluster: &str, address: &str) -> bool {
        let mut members = self.members(cluster, address);
        members.any(|key| self.known.contains(key) || !self.is_there.contains(key))
    }

    /// Returns the entries that an endpoint may belong to.
    fn members(&self, cluster: &str, address: &str) -> impl Iterator<Item = &Key> {
        let of_group = move |name: &str| GROUPS.iter().any(|it| cluster.contains(it) && name.starts_with(it));
        let fits = move |((key, _), host): &(&(Key, Kind), &usize)| {
            configuration::address(**host) == address && (key.name.starts_with("vm-") || of_group(&key.name))
        };
        self.machines.iter().zip(&self.hosts).filter(fits).map(|((key, _), _)| key)
    }
}
