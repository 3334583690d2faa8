//! A bounded amount of something, such as connections or bytes, that the members of several sources
//! share. Under pressure, the source that has the most loses a member.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

/// Members of sources `K`. The `T` of a member is dropped when the member is evicted. Times are
/// durations since an arbitrary start.
#[derive(Debug)]
pub struct FairPool<K, T> {
    total: usize,
    share: usize,
    used: usize,
    next: u64,
    /// Keyed by sequence number and therefore ordered by age.
    members: BTreeMap<u64, Member<K, T>>,
}

#[derive(Debug)]
struct Member<K, T> {
    source: K,
    amount: usize,
    /// Since when the member may be evicted, which can be in the future; `None` while it is busy.
    idle: Option<Duration>,
    data: T,
}

/// There is nothing left for a member, or it has been evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl<K, T> FairPool<K, T> {
    /// `total` is the amount of all members. `share` is that of the members of one source that
    /// [`Self::admit`] adds.
    pub const fn new(total: usize, share: usize) -> Self {
        Self { total, share, used: 0, next: 0, members: BTreeMap::new() }
    }

    /// Returns the amount of all members.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Adds a member with an amount of 0, which may be evicted as soon as it has [grown](Self::grow),
    /// and returns its number.
    pub fn open(&mut self, source: K, data: T) -> u64 {
        self.insert(source, 0, Duration::ZERO, data)
    }

    /// Sets since when a member may be evicted; `None` excludes it from eviction. Returns false if
    /// there is no such member, for example because it has been evicted.
    pub fn set_idle(&mut self, number: u64, idle: Option<Duration>) -> bool {
        self.members.get_mut(&number).map(|member| member.idle = idle).is_some()
    }

    /// Removes a member and returns its data.
    pub fn remove(&mut self, number: u64) -> Option<T> {
        let member = self.members.remove(&number)?;
        self.used = self.used.saturating_sub(member.amount);
        Some(member.data)
    }

    fn insert(&mut self, source: K, amount: usize, idle: Duration, data: T) -> u64 {
        let number = self.next;
        self.next += 1;
        self.used += amount;
        self.members.insert(number, Member { source, amount, idle: Some(idle), data });
        number
    }
}

impl<K: Ord, T> FairPool<K, T> {
    /// Adds a member with an amount of 1, which may be evicted from `now` on, and returns its number.
    /// At a limit it evicts the member that has been idle for the longest time: of the same source if
    /// the limit is the share, else of the source that has the most.
    pub fn admit(&mut self, source: K, now: Duration, data: T) -> Result<u64, Full> {
        let is_at_share = self.amount(&source) >= self.share;
        if is_at_share || self.used >= self.total {
            let is_candidate = |member: &Member<K, T>| !is_at_share || member.source == source;
            let victim = self.victim(now, is_candidate).ok_or(Full)?;
            self.remove(victim);
        }
        Ok(self.insert(source, 1, now, data))
    }

    /// Like [`Self::admit`], but evicts only a member of a source that has more than `source` would
    /// have then.
    pub fn admit_fairly(&mut self, source: K, now: Duration, data: T) -> Result<u64, Full> {
        if self.used >= self.total {
            let victim = self.victim(now, |_| true).and_then(|number| self.members.get(&number));
            let most = victim.map_or(0, |member| self.amount(&member.source));
            if most <= self.amount(&source) + 1 {
                return Err(Full);
            }
        }
        self.admit(source, now, data)
    }

    /// Adds to the amount of a member, and evicts members until the total is kept. The source of this
    /// member counts with the larger amount, so that it loses its own members if it has the most.
    pub fn grow(&mut self, number: u64, amount: usize, now: Duration) -> Result<(), Full> {
        let member = self.members.get_mut(&number).ok_or(Full)?;
        member.amount += amount;
        self.used += amount;
        while self.used > self.total {
            let victim = self.victim(now, |_| true).unwrap_or(number);
            self.remove(victim);
            if victim == number {
                return Err(Full);
            }
        }
        Ok(())
    }

    /// Returns the amount of all members of a source.
    fn amount(&self, source: &K) -> usize {
        let members = self.members.values().filter(|member| member.source == *source);
        members.map(|member| member.amount).sum()
    }

    /// Returns the candidate that has been idle for the longest time, or the oldest of them, among
    /// those of the source that has the most.
    fn victim(&self, now: Duration, is_candidate: impl Fn(&Member<K, T>) -> bool) -> Option<u64> {
        let mut amounts = BTreeMap::<&K, usize>::new();
        for member in self.members.values() {
            *amounts.entry(&member.source).or_default() += member.amount;
        }
        let idle = self.members.iter().filter(|(_, member)| member.amount > 0 && is_candidate(member));
        let victims = idle.filter_map(|(number, member)| {
            let idle = member.idle.filter(|idle| *idle <= now)?;
            Some((Reverse(amounts.get(&member.source)), idle, *number))
        });
        victims.min().map(|(_, _, number)| number)
    }
}

#[cfg(test)]
mod tests;
