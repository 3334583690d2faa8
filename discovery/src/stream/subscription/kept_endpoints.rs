//! The endpoints that a peer keeps because it rejected the assignments that replace them.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Numbers of endpoints by name.
#[derive(Debug, Default)]
pub(super) struct KeptEndpoints {
    /// The endpoints that the response in flight replaces, if it is accepted.
    replaced: BTreeMap<Arc<str>, u32>,
    /// The endpoints that rejected responses would have replaced, so the peer still has them.
    kept: BTreeMap<Arc<str>, u32>,
}

impl KeptEndpoints {
    /// Records a response with these assignments. `had` returns the number of endpoints that an earlier
    /// response gave the peer.
    pub(super) fn sent<'a>(
        &mut self,
        names: impl Iterator<Item = &'a Arc<str>>,
        had: impl Fn(&Arc<str>) -> u32,
    ) {
        let number = |name| self.kept.get(name).copied().unwrap_or_else(|| had(name));
        self.replaced = names.map(|name| (name.clone(), number(name))).collect();
    }

    pub(super) fn accepted(&mut self) {
        for name in std::mem::take(&mut self.replaced).keys() {
            self.kept.remove(name);
        }
    }

    pub(super) fn rejected(&mut self) {
        self.kept.append(&mut self.replaced);
    }

    pub(super) fn retain(&mut self, is_kept: impl Fn(&Arc<str>) -> bool) {
        self.kept.retain(|name, _| is_kept(name));
    }

    /// Returns what the peer still keeps once it has accepted the response in flight.
    pub(super) fn remaining(&self) -> impl Iterator<Item = (Arc<str>, u32)> {
        let kept = self.kept.iter().filter(|(name, _)| !self.replaced.contains_key(*name));
        kept.map(|(name, number)| (name.clone(), *number))
    }
}
