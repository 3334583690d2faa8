//! PURE. What a server that lost its store may tell Envoys that hold endpoints from before.

use std::collections::{BTreeMap, BTreeSet};

use discovery::objects::Key;

use super::Watch;
use crate::configuration;
use crate::plan::{GROUPS, Kind};

/// Where an Envoy sends requests: addresses by cluster.
type Endpoints = BTreeMap<String, BTreeSet<String>>;

impl Watch {
    /// A server that lost its store makes no set smaller, but by those in it of whom somebody said something.
    pub fn pushed_by_settling(&mut self, before: &Endpoints, after: &Endpoints) {
        for (cluster, endpoints) in after {
            let Some(before) = before.get(cluster) else { continue };
            let missing = before.iter().filter(|address| !endpoints.contains(*address));
            let mut explained = missing.filter(|address| self.is_known(cluster, address)).count();
            // Who flaps may have been counted for one that was in the set.
            let hosts: BTreeSet<String> =
                self.hosts.iter().map(|host| configuration::address(*host)).collect();
            let strangers = hosts.iter().filter(|host| !before.contains(*host) && !endpoints.contains(*host));
            explained += strangers
                .filter(|host| self.members(cluster, host).any(|it| self.moving.contains(it)))
                .count();
            if endpoints.len() + explained < before.len() && !self.is_lied_to {
                self.wrong.get_or_insert_with(|| {
                    format!("{cluster}: a server that lost its store makes {before:?} into {endpoints:?}")
                });
            }
        }
    }

    /// Whether somebody said something of this endpoint, or the operator removed it.
    fn is_known(&self, cluster: &str, address: &str) -> bool {
        let mut members = self.members(cluster, address);
        members.any(|key| self.known.contains(key) || !self.is_there.contains(key))
    }

    /// The entries that an endpoint may stand for.
    fn members(&self, cluster: &str, address: &str) -> impl Iterator<Item = &Key> {
        let of_group = move |name: &str| GROUPS.iter().any(|it| cluster.contains(it) && name.starts_with(it));
        let fits = move |((key, _), host): &(&(Key, Kind), &usize)| {
            configuration::address(**host) == address && (key.name.starts_with("vm-") || of_group(&key.name))
        };
        self.machines.iter().zip(&self.hosts).filter(fits).map(|((key, _), _)| key)
    }
}
