//! PURE. The families of a scrape: which of them were announced. Names are kept as fingerprints of seven bytes, so that what
//! applications call their metrics costs no memory but for a fixed number of them.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// How many names a part may add. An entry has eight bytes, so all parts of a scrape stay below 2 MiB, also in the moment in which the
/// table grows; Envoy itself has some thousand families at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room(usize);

impl Room {
    /// For Envoy.
    pub const ENVOY: Self = Self(30_000);
    /// For each of eight targets, and for the agent itself.
    pub const TARGET: Self = Self(10_000);

    /// For so many names.
    #[cfg(test)]
    pub(super) fn of(names: usize) -> Self {
        Self(names)
    }
}

/// There are more families than are remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRoom;

/// What bounds of a family's samples have to be numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Kind {
    /// `le`.
    Histogram,
    /// `quantile`.
    Summary,
    /// None.
    #[default]
    Other,
}

/// Two names with the same fingerprint, one time in millions of scrapes, are one family here: it may lose a `TYPE`, no sample.
type Fingerprint = [u8; 7];

/// All families so far.
#[derive(Debug, Default)]
pub struct Families {
    random: RandomState,
    known: HashMap<Fingerprint, Facts>,
}

/// One byte.
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
    /// A `HELP`. Is it the first one?
    pub fn help(&mut self, name: &str, room: &mut Room) -> Result<bool, NoRoom> {
        let facts = self.facts(name, room)?;
        let is_first = !facts.has(Facts::HELPED);
        facts.0 |= Facts::HELPED;
        Ok(is_first)
    }

    /// A `TYPE`. Is it the first one, and before all samples?
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

    /// A sample: a `TYPE` behind it is as wrong as a second one.
    pub fn sample(&mut self, name: &str, room: &mut Room) -> Result<Kind, NoRoom> {
        let facts = self.facts(name, room)?;
        facts.0 |= Facts::TYPED;
        Ok(facts.kind())
    }

    /// Of the family that parsers count `name` to: the one of that name, else the summary or histogram that it is a part of, else a
    /// new one.
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
