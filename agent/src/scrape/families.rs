//! Tracks the metric families of a scrape. Names are kept as fingerprints of seven bytes and are
//! limited in number, so that the names of applications' metrics take bounded memory.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// Number of families that a source may still add. An entry has nine bytes, so all sources of a
/// scrape stay below 3 MiB, even while the table grows. Envoy itself has a few thousand families at
/// most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FamilyLimit(pub(super) usize);

impl FamilyLimit {
    pub const ENVOY: Self = Self(30_000);
    /// Limit for each of eight targets, and for the agent itself.
    pub const TARGET: Self = Self(10_000);
}

/// Type of a family, as far as it determines which label must be a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The label `le` must be a number.
    Histogram,
    /// The label `quantile` must be a number.
    Summary,
    Other,
}

/// Hash of a family name. If two names collide, which happens once in millions of scrapes, they
/// count as one family, which may lose a `TYPE` line but no sample.
type Fingerprint = [u8; 7];

#[derive(Debug, Default)]
pub(super) struct Families {
    random: RandomState,
    known: HashMap<Fingerprint, Family>,
}

#[derive(Debug, Default)]
struct Family {
    has_help: bool,
    /// `None` until a `TYPE` line or a sample.
    kind: Option<Kind>,
}

/// Each method returns `None` if the name would exceed the limit of the source.
impl Families {
    /// Records a `HELP` line and returns true if it is the first one of its family.
    pub(super) fn record_help(&mut self, name: &str, limit: &mut FamilyLimit) -> Option<bool> {
        let family = self.family(name, limit)?;
        Some(!std::mem::replace(&mut family.has_help, true))
    }

    /// Records a `TYPE` line and returns true if it is the first one and precedes all samples.
    pub(super) fn record_type(&mut self, name: &str, kind: &str, limit: &mut FamilyLimit) -> Option<bool> {
        let family = self.family(name, limit)?;
        let is_first = family.kind.is_none();
        family.kind.get_or_insert(match kind {
            "histogram" => Kind::Histogram,
            "summary" => Kind::Summary,
            _ => Kind::Other,
        });
        Some(is_first)
    }

    /// Records a sample. A `TYPE` line after a sample is as invalid as a second one.
    pub(super) fn record_sample(&mut self, name: &str, limit: &mut FamilyLimit) -> Option<Kind> {
        Some(*self.family(name, limit)?.kind.get_or_insert(Kind::Other))
    }

    /// Returns the family to which parsers assign `name`: the family of that name, or else the
    /// summary or histogram that `name` is a part of, or else a new family.
    fn family(&mut self, name: &str, limit: &mut FamilyLimit) -> Option<&mut Family> {
        let fingerprint = |name: &str| {
            let [_, fingerprint @ ..] = self.random.hash_one(name).to_be_bytes();
            fingerprint
        };
        let part_of = |suffixes: &[&str], kind: Kind| {
            let base = suffixes.iter().find_map(|suffix| name.strip_suffix(suffix)).map(fingerprint)?;
            self.known.get(&base).is_some_and(|family| family.kind == Some(kind)).then_some(base)
        };
        let mut key = fingerprint(name);
        if !self.known.contains_key(&key) {
            let base = part_of(&["_count", "_sum"], Kind::Summary)
                .or_else(|| part_of(&["_count", "_sum", "_bucket"], Kind::Histogram));
            match base {
                Some(base) => key = base,
                None => limit.0 = limit.0.checked_sub(1)?,
            }
        }
        Some(self.known.entry(key).or_default())
    }
}

#[cfg(test)]
mod tests;
