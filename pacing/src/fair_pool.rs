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
    next: u64,
    /// Amounts of the sources; the sum is `used`.
    amounts: BTreeMap<K, usize>,
    used: usize,
    /// Keyed by sequence number and therefore ordered by age.
    members: BTreeMap<u64, Member<K, T>>,
}

#[derive(Debug)]
struct Member<K, T> {
    source: K,
    amount: usize,
    /// Since when the member is idle, which can be in the future; `None` while it is busy.
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
        Self { total, share, next: 0, amounts: BTreeMap::new(), used: 0, members: BTreeMap::new() }
    }

    /// Returns the amount of all members.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Sets since when a member is idle; `None` means that it is busy. Returns false if there is no
    /// such member, for example because it has been evicted.
    pub fn set_idle(&mut self, number: u64, idle: Option<Duration>) -> bool {
        self.members.get_mut(&number).map(|member| member.idle = idle).is_some()
    }
}

impl<K: Clone + Ord, T> FairPool<K, T> {
    /// Adds a member with an amount of 0, which may be evicted as soon as it has [grown](Self::grow),
    /// and returns its number.
    pub fn open(&mut self, source: K, data: T) -> u64 {
        self.insert(source, 0, Duration::ZERO, data)
    }

    /// Adds a member with an amount of 1, which is idle from `now` on, and returns its number. At the
    /// total it evicts like [`Self::admit_fairly`], and else a member that is idle: of a source that
    /// has more than `source`, or of `source` itself. At the share it evicts an idle member of
    /// `source`.
    pub fn admit(&mut self, source: K, now: Duration, data: T) -> Result<u64, Full> {
        let own = self.amount(&source);
        if own >= self.share {
            let is_candidate = |member: &Member<K, T>, _| member.is_idle(now) && member.source == source;
            self.evict(is_candidate)?;
        } else if self.used >= self.total {
            self.evict(|_, amount| amount > own + 1).or_else(|Full| {
                self.evict(|member, amount| member.is_idle(now) && (amount > own || member.source == source))
            })?;
        }
        Ok(self.insert(source, 1, now, data))
    }

    /// Adds a member with an amount of 1. At the total it evicts a member of the source that has the
    /// most, also a busy one, but only if that source then still has as many as `source`. So however
    /// many members other sources have, a source gets as many as the one with the most.
    pub fn admit_fairly(&mut self, source: K, now: Duration, data: T) -> Result<u64, Full> {
        if self.used >= self.total {
            let own = self.amount(&source);
            self.evict(|_, amount| amount > own + 1)?;
        }
        Ok(self.insert(source, 1, now, data))
    }

    /// Adds to the amount of a member, and evicts idle members until the total is kept. The source of
    /// this member counts with the larger amount, so that it loses its own members if it has the most.
    pub fn grow(&mut self, number: u64, amount: usize, now: Duration) -> Result<(), Full> {
        let member = self.members.get_mut(&number).ok_or(Full)?;
        member.amount += amount;
        self.used += amount;
        *self.amounts.entry(member.source.clone()).or_default() += amount;
        while self.used > self.total {
            let victim = self.victim(|member, _| member.is_idle(now)).unwrap_or(number);
            self.remove(victim);
            if victim == number {
                return Err(Full);
            }
        }
        Ok(())
    }

    /// Removes a member and returns its data.
    pub fn remove(&mut self, number: u64) -> Option<T> {
        let member = self.members.remove(&number)?;
        self.used = self.used.saturating_sub(member.amount);
        let left = self.amount(&member.source).saturating_sub(member.amount);
        if left == 0 {
            self.amounts.remove(&member.source);
        } else {
            self.amounts.insert(member.source, left);
        }
        Some(member.data)
    }

    fn insert(&mut self, source: K, amount: usize, idle: Duration, data: T) -> u64 {
        let number = self.next;
        self.next += 1;
        self.used += amount;
        *self.amounts.entry(source.clone()).or_default() += amount;
        self.members.insert(number, Member { source, amount, idle: Some(idle), data });
        number
    }

    /// Returns the amount of all members of a source.
    fn amount(&self, source: &K) -> usize {
        self.amounts.get(source).copied().unwrap_or_default()
    }

    fn evict(&mut self, is_candidate: impl Fn(&Member<K, T>, usize) -> bool) -> Result<(), Full> {
        let victim = self.victim(is_candidate).ok_or(Full)?;
        self.remove(victim);
        Ok(())
    }

    /// Returns a candidate of the source that has the most: the one that has been idle for the longest
    /// time, else the one that will be idle first, else the oldest busy one. A candidate is chosen by
    /// the member and the amount of its source.
    fn victim(&self, is_candidate: impl Fn(&Member<K, T>, usize) -> bool) -> Option<u64> {
        let members = self.members.iter().filter(|(_, member)| member.amount > 0);
        let victims = members.filter_map(|(number, member)| {
            let amount = self.amount(&member.source);
            let order = (Reverse(amount), member.idle.unwrap_or(Duration::MAX), *number);
            is_candidate(member, amount).then_some(order)
        });
        victims.min().map(|(_, _, number)| number)
    }
}

impl<K, T> Member<K, T> {
    fn is_idle(&self, now: Duration) -> bool {
        self.idle.is_some_and(|idle| idle <= now)
    }
}

#[cfg(test)]
mod tests;
