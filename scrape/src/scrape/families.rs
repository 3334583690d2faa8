//! Tracks the metric families of a scrape. Names are kept as fingerprints of seven bytes and are
//! limited in number, so that the names of applications' metrics take bounded memory.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use super::dropped::DropReason;

/// Number of families that a source may still add. An entry has eleven bytes, so all sources of a
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

/// Source of a sample, as far as it matters for equal series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// A label tells the series of this source apart from those of others.
    Labelled,
    /// Position of the source in the configuration.
    Source(u8),
}

/// Hash of a family name. If two names collide, which happens once in millions of scrapes, they
/// count as one family, which may lose a `TYPE` line but no sample.
type Fingerprint = [u8; 7];

#[derive(Debug, Default)]
pub(super) struct Families {
    random: RandomState,
    known: HashMap<Fingerprint, Family>,
    /// Number of families with samples of several sources.
    shared: u64,
    first_shared: Option<String>,
}

#[derive(Debug, Default)]
struct Family {
    has_help: bool,
    /// `None` until a `TYPE` line or a sample.
    kind: Option<Kind>,
    samples: Samples,
}

/// Sources of the samples of a family, without those that a label tells apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Samples {
    #[default]
    None,
    Source(u8),
    Several,
}

/// Each method returns `TooManyFamilies` if the name would exceed the limit of the source.
impl Families {
    /// Records a `HELP` line and returns true if it is the first one of its family.
    pub(super) fn record_help(&mut self, name: &str, limit: &mut FamilyLimit) -> Result<bool, DropReason> {
        let family = self.family(name, limit)?;
        Ok(!std::mem::replace(&mut family.has_help, true))
    }

    /// Records a `TYPE` line and returns true if it is the first one and precedes all samples.
    pub(super) fn record_type(
        &mut self,
        name: &str,
        kind: &str,
        limit: &mut FamilyLimit,
    ) -> Result<bool, DropReason> {
        let family = self.family(name, limit)?;
        let is_first = family.kind.is_none();
        family.kind.get_or_insert(match kind {
            "histogram" => Kind::Histogram,
            "summary" => Kind::Summary,
            _ => Kind::Other,
        });
        Ok(is_first)
    }

    /// Records a sample. A `TYPE` line after a sample is as invalid as a second one.
    pub(super) fn record_sample(
        &mut self,
        name: &str,
        owner: Owner,
        limit: &mut FamilyLimit,
    ) -> Result<Kind, DropReason> {
        let family = self.family(name, limit)?;
        let kind = *family.kind.get_or_insert(Kind::Other);
        if let Owner::Source(source) = owner {
            match family.samples {
                Samples::None => family.samples = Samples::Source(source),
                Samples::Source(other) if other != source => {
                    family.samples = Samples::Several;
                    self.shared += 1;
                    self.first_shared.get_or_insert_with(|| name.to_owned());
                }
                Samples::Source(_) | Samples::Several => {}
            }
        }
        Ok(kind)
    }

    /// Returns the number of families of which several sources have samples, and the name of a sample
    /// of the first one.
    pub(super) fn shared(&self) -> (u64, Option<&str>) {
        (self.shared, self.first_shared.as_deref())
    }

    /// Returns the family to which parsers assign `name`: the family of that name, or else the
    /// summary or histogram that `name` is a part of, or else a new family.
    fn family(&mut self, name: &str, limit: &mut FamilyLimit) -> Result<&mut Family, DropReason> {
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
                None => limit.0 = limit.0.checked_sub(1).ok_or(DropReason::TooManyFamilies)?,
            }
        }
        Ok(self.known.entry(key).or_default())
    }
}

#[cfg(test)]
mod tests;
