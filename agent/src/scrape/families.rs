//! Tracks which metric families of a scrape were announced. Names are kept as fingerprints of seven
//! bytes and are limited in number, so that the names of applications' metrics take bounded memory.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// Number of names that a source may still add. An entry has eight bytes, so all sources of a
/// scrape stay below 2 MiB, even while the table grows. Envoy itself has a few thousand families at
/// most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room(usize);

impl Room {
    pub const ENVOY: Self = Self(30_000);
    /// Limit for each of eight targets, and for the agent itself.
    pub const TARGET: Self = Self(10_000);

    #[cfg(test)]
    pub(super) fn of(names: usize) -> Self {
        Self(names)
    }
}

/// Error for a source that has more families than its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRoom;

/// Type of a family, as far as it determines which label must be a number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Kind {
    /// The label `le` must be a number.
    Histogram,
    /// The label `quantile` must be a number.
    Summary,
    /// No label must be a number.
    #[default]
    Other,
}

/// Hash of a family name. If two names collide, which happens once in millions of scrapes, they
/// count as one family, which may lose a `TYPE` line but no sample.
type Fingerprint = [u8; 7];

#[derive(Debug, Default)]
pub struct Families {
    random: RandomState,
    known: HashMap<Fingerprint, Facts>,
}

/// Bit set of what is known about a family.
#[derive(Debug, Clone, Copy, Default)]
struct Facts(u8);

impl Facts {
    const TYPED: u8 = 1;
    const HELPED: u8 = 2;
    const HISTOGRAM: u8 = 4;
    const SUMMARY: u8 = 8;

    fn has(self, fact: u8) -> bool {
        self.0 & fact != 0
    }

    fn kind(self) -> Kind {
        match self {
            _ if self.has(Self::HISTOGRAM) => Kind::Histogram,
            _ if self.has(Self::SUMMARY) => Kind::Summary,
            _ => Kind::Other,
        }
    }
}

impl Families {
    /// Records a `HELP` line and returns true if it is the first one of its family.
    pub fn help(&mut self, name: &str, room: &mut Room) -> Result<bool, NoRoom> {
        let facts = self.facts(name, room)?;
        let is_first = !facts.has(Facts::HELPED);
        facts.0 |= Facts::HELPED;
        Ok(is_first)
    }

    /// Records a `TYPE` line and returns true if it is the first one and precedes all samples.
    pub fn announce(&mut self, name: &str, kind: &str, room: &mut Room) -> Result<bool, NoRoom> {
        let facts = self.facts(name, room)?;
        let is_first = !facts.has(Facts::TYPED);
        if is_first {
            facts.0 |= match kind {
                "histogram" => Facts::TYPED | Facts::HISTOGRAM,
                "summary" => Facts::TYPED | Facts::SUMMARY,
                _ => Facts::TYPED,
            };
        }
        Ok(is_first)
    }

    /// Records a sample. A `TYPE` line after a sample is as invalid as a second one.
    pub fn sample(&mut self, name: &str, room: &mut Room) -> Result<Kind, NoRoom> {
        let facts = self.facts(name, room)?;
        facts.0 |= Facts::TYPED;
        Ok(facts.kind())
    }

    /// Returns the facts about the family to which parsers assign `name`: the family of that name,
    /// or else the summary or histogram that `name` is a part of, or else a new family.
    fn facts(&mut self, name: &str, room: &mut Room) -> Result<&mut Facts, NoRoom> {
        let key = self.family(name);
        if !self.known.contains_key(&key) {
            room.0 = room.0.checked_sub(1).ok_or(NoRoom)?;
        }
        Ok(self.known.entry(key).or_default())
    }

    fn family(&self, name: &str) -> Fingerprint {
        let key = self.fingerprint(name);
        if self.known.contains_key(&key) {
            return key;
        }
        let part_of = |suffixes: &[&str], fact: u8| {
            let base = suffixes.iter().find_map(|suffix| name.strip_suffix(suffix))?;
            let key = self.fingerprint(base);
            self.known.get(&key).is_some_and(|facts| facts.has(fact)).then_some(key)
        };
        part_of(&["_count", "_sum"], Facts::SUMMARY)
            .or_else(|| part_of(&["_count", "_sum", "_bucket"], Facts::HISTOGRAM))
            .unwrap_or(key)
    }

    fn fingerprint(&self, name: &str) -> Fingerprint {
        let [_, fingerprint @ ..] = self.random.hash_one(name).to_be_bytes();
        fingerprint
    }
}

#[cfg(test)]
mod tests;
