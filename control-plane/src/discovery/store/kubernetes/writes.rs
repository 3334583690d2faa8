//! Pending writes to the API server: decides which request is sent next, what its response means,
//! and which watch events the registry must know.
//!
//! At most one request per entry is in flight. State transitions are sent before other writes, at a
//! limited rate. Failed writes are retried indefinitely, and only the newest desired state is
//! written. If [`decision`](super::decision) finds that another writer owns an entry, the registry
//! receives the current object.

mod queue;
mod request;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::decision::{Step, Wish, Writer, Written, decide};
use super::object;
use super::objects::Objects;
use discovery::entries::Record;
use discovery::objects::Key;
use pacing::{RateLimiter, exponential};
use queue::Queue;

pub use request::{Answer, Effect, Request};

/// Maximum number of concurrent requests.
const IN_FLIGHT: usize = 16;
/// Backoff between attempts: the first delay, which doubles, and the maximum.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// How often the delay doubles after conflicts; the API server is reachable, so it stays short.
const CONFLICTS: u32 = 2;

/// Number of consecutive failures after which the API server counts as unreachable.
const AWAY: u32 = 3;

/// An entry with a desired state, or one that must be read.
#[derive(Debug, Default)]
struct Pending {
    /// Desired state, and the sequence number of its write.
    wish: Option<(Wish, u64)>,
    /// True if the object already had this spec when the desired state was set.
    same_spec: bool,
    written: Written,
    /// True if the known object may be outdated.
    read: bool,
    attempts: u32,
    /// Request in flight, and the sequence number of its write.
    sent: Option<(Request, Option<u64>)>,
    /// Watch event that arrived while a request is in flight; it may be caused by that request.
    held: Option<Seen>,
}

#[derive(Debug)]
enum Seen {
    Is(Value),
    Gone(Value),
}

#[derive(Debug)]
pub struct Writes {
    writer: Writer,
    objects: Objects,
    pending: BTreeMap<Key, Pending>,
    queue: Queue,
    rate: RateLimiter,
    in_flight: usize,
    /// Consecutive failures of the API server; no request is sent before `rest`.
    failures: u32,
    rest: Duration,
    /// Resource version at which an entry was last found to belong to another writer.
    lost: BTreeMap<Key, Option<String>>,
}

fn backoff(attempts: u32) -> Duration {
    exponential(BACKOFF.0, BACKOFF.1, attempts)
}

impl Writes {
    /// Allows `per_second` writes per second.
    pub fn new(writer: Writer, per_second: NonZeroU32) -> Self {
        Self {
            writer,
            objects: Objects::default(),
            pending: BTreeMap::new(),
            queue: Queue::default(),
            rate: RateLimiter::new(Duration::from_secs(1) / per_second.get(), per_second.get()),
            in_flight: 0,
            failures: 0,
            rest: Duration::ZERO,
            lost: BTreeMap::new(),
        }
    }

    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// Returns the number of entries that do not have their desired state yet.
    pub fn waiting(&self) -> usize {
        self.pending.values().filter(|pending| pending.wish.is_some()).count()
    }

    /// True after repeated failures of the API server.
    pub fn is_failing(&self) -> bool {
        self.failures >= AWAY
    }

    /// Sets the replicas that are alive.
    pub fn alive(&mut self, alive: BTreeSet<String>) {
        self.writer.alive = alive;
    }

    /// Sets the desired state of an entry.
    pub fn wish(&mut self, key: Key, write: u64, wish: Wish) {
        let current = self.objects.get(&key).map(Arc::as_ref);
        let is_urgent = is_urgent(current, &wish);
        let pending = self.pending.entry(key.clone()).or_default();
        let has_spec = |record: &Record| current.is_some_and(|object| object::has_spec(object, record));
        pending.same_spec = matches!(&wish, Wish::Put(record) if has_spec(record));
        pending.wish = Some((wish, write));
        pending.written = Written::default();
        if pending.sent.is_none() {
            self.queue.push(key, is_urgent);
        }
    }

    /// Processes an object from the watch.
    pub fn seen(&mut self, key: Key, object: Value) -> Vec<Effect> {
        self.take_in(key, Seen::Is(object))
    }

    /// Processes a deletion from the watch; `last` is the last state of the object.
    pub fn gone(&mut self, key: Key, last: Value) -> Vec<Effect> {
        self.take_in(key, Seen::Gone(last))
    }

    /// Processes a complete list of all namespaces or of one: objects that it does not contain are
    /// read.
    pub fn listed(&mut self, namespace: Option<&str>, keys: &BTreeSet<Key>) {
        for key in self.objects.missing(namespace, keys) {
            let pending = self.pending.entry(key.clone()).or_default();
            pending.read = true;
            if pending.sent.is_none() {
                self.queue.push(key, true);
            }
        }
    }

    fn take_in(&mut self, key: Key, seen: Seen) -> Vec<Effect> {
        if let Some(pending) = self.pending.get_mut(&key).filter(|pending| pending.sent.is_some()) {
            pending.held = Some(seen);
            return Vec::new();
        }
        let before = self.objects.get(&key).cloned();
        let is_news = match seen {
            Seen::Is(object) => self.objects.put(&key, object),
            Seen::Gone(last) => self.objects.gone(&key, &last),
        };
        if !is_news {
            return Vec::new();
        }
        if let Some(pending) = self.pending.get_mut(&key) {
            // Another writer changed the object, so both parts may have to be written again.
            pending.written = Written::default();
        }
        self.news(key, before.as_deref())
    }

    /// Returns the effects of a changed object for the registry.
    fn news(&self, key: Key, before: Option<&Value>) -> Vec<Effect> {
        let now = self.objects.get(&key).map(Arc::as_ref);
        let record = |object: Option<&Value>| {
            object.map(|object| Record { resource_version: None, ..object::record(object) })
        };
        let mut effects = Vec::new();
        if object::configured(before) != object::configured(now) {
            effects.push(Effect::Changed(key.clone()));
        }
        if record(before) != record(now) {
            effects.push(Effect::Observed(key, now.map(|object| Box::new(object::record(object)))));
        }
        effects
    }

    /// Returns everything that can be done now.
    pub fn step(&mut self, now: Duration) -> Vec<Effect> {
        let mut effects = Vec::new();
        let limit = if self.failures > 0 { 1 } else { IN_FLIGHT };
        while self.in_flight < limit && now >= self.rest {
            let Some((key, is_urgent)) = self.queue.pop(now) else { break };
            if let Err(ready) = self.next(now, &key, &mut effects) {
                self.queue.hold((key, is_urgent), ready);
                break;
            }
        }
        effects
    }

    /// Sends the next request of one entry, or completes it. Returns the time of the next token as
    /// error if the rate limit is reached.
    fn next(&mut self, now: Duration, key: &Key, effects: &mut Vec<Effect>) -> Result<(), Duration> {
        let Some(pending) = self.pending.get_mut(key).filter(|pending| pending.sent.is_none()) else {
            return Ok(());
        };
        let write = pending.wish.as_ref().map(|(_, write)| *write);
        let request = if pending.read {
            Request::Read
        } else {
            let Some((wish, write)) = &pending.wish else {
                self.pending.remove(key);
                return Ok(());
            };
            let current = self.objects.get(key).map(Arc::as_ref);
            let written = Written { spec: pending.same_spec, ..pending.written };
            match decide(key, current, wish, &self.writer, written) {
                Step::Done => {
                    effects.push(Effect::Stored(key.clone(), *write));
                    self.lost.remove(key);
                    self.pending.remove(key);
                    return Ok(());
                }
                Step::Lost => {
                    self.lose(now, key, effects);
                    return Ok(());
                }
                step => {
                    self.rate.take(now)?;
                    Request::Write(step)
                }
            }
        };
        pending.sent = Some((request.clone(), write));
        self.in_flight += 1;
        effects.push(Effect::Send(key.clone(), request));
        Ok(())
    }

    /// Lets the registry decide again; if nothing has changed since the last time, only after a
    /// pause.
    fn lose(&mut self, now: Duration, key: &Key, effects: &mut Vec<Effect>) {
        let current = self.objects.get(key);
        let version = current.and_then(|object| object::version(object)).map(str::to_owned);
        if self.lost.get(key) == Some(&version) {
            self.lost.remove(key);
            self.queue.delay(key.clone(), now + BACKOFF.1);
            return;
        }
        let record = current.map(|object| Box::new(object::record(object)));
        effects.push(Effect::Observed(key.clone(), record));
        self.lost.insert(key.clone(), version);
        self.pending.remove(key);
    }

    /// Processes the response to the request in flight for an entry.
    pub fn answered(&mut self, now: Duration, key: Key, answer: Answer) -> Vec<Effect> {
        let Some(pending) = self.pending.get_mut(&key) else { return Vec::new() };
        let Some((request, write)) = pending.sent.take() else { return Vec::new() };
        self.in_flight -= 1;
        let held = pending.held.take();
        let is_newest = write == pending.wish.as_ref().map(|(_, write)| *write);
        let before = self.objects.get(&key).cloned();
        if answer != Answer::Away {
            self.failures = 0;
        }
        let mut delay = None;
        match answer {
            Answer::Object(object) => {
                pending.read = false;
                if request != Request::Read {
                    pending.attempts = 0;
                }
                if is_newest {
                    pending.written.main |=
                        matches!(request, Request::Write(Step::Replace(_) | Step::Create(_)));
                    pending.written.status |= matches!(request, Request::Write(Step::ReplaceStatus(_)));
                }
                self.objects.put(&key, *object);
            }
            Answer::Absent => {
                pending.read = false;
                // The namespace does not exist; it may be created later.
                delay = matches!(request, Request::Write(Step::Create(_))).then_some(pending.attempts);
                self.objects.bury(&key);
            }
            Answer::Conflict => {
                pending.read = true;
                pending.written = Written::default();
                // Capped, since a frequent writer would otherwise delay our write more and more.
                delay = pending.attempts.checked_sub(1).map(|attempts| attempts.min(CONFLICTS));
            }
            Answer::Refused => delay = Some(pending.attempts),
            Answer::Away => {
                pending.read = true;
                self.rest = now + backoff(self.failures);
                self.failures = self.failures.saturating_add(1);
            }
        }
        match delay {
            Some(attempts) => self.queue.delay(key.clone(), now + backoff(attempts)),
            None => self.queue.push(key.clone(), true),
        }
        if delay.is_some() || pending.read {
            pending.attempts = pending.attempts.saturating_add(1);
        }
        let is_own = matches!(request, Request::Write(_));
        let mut effects = if is_own { Vec::new() } else { self.news(key.clone(), before.as_deref()) };
        if let Some(seen) = held {
            effects.extend(self.take_in(key, seen));
        }
        effects
    }

    /// Returns when [`Self::step`] has something to do without other events.
    pub fn next_due(&self) -> Option<Duration> {
        let limit = if self.failures > 0 { 1 } else { IN_FLIGHT };
        let due = self.queue.next_due().filter(|_| self.in_flight < limit)?;
        Some(due.max(self.rest))
    }
}

/// True if the desired state changes what other components act on, not only informative fields.
fn is_urgent(current: Option<&Value>, wish: &Wish) -> bool {
    let (Some(current), Wish::Put(record)) = (current, wish) else { return true };
    let there = object::record(current);
    let status =
        |record: &Record| record.condition.as_ref().map(|condition| (condition.status, condition.reason));
    there.session != record.session
        || there.controller != record.controller
        || there.auto != record.auto
        || status(&there) != status(record)
}

#[cfg(test)]
mod tests;
