//! Pending writes to the API server: decides which request is sent next, what its response means,
//! and which watch events the registry must know.
//!
//! At most one request per entry is in flight. State transitions are sent before other writes, at a
//! limited rate. Failed writes are retried indefinitely, and only the newest desired state is
//! written. If [`decision`](super::decision) finds that another writer owns an entry, the registry
//! receives the current object.

mod queue;
mod response;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::backoff;
use super::decision::{AppliedParts, DesiredState, ReplicaContext, Step, decide, is_urgent};
use super::object;
use super::object_cache::ObjectCache;
use super::request::Request;
use discovery::entries::Record;
use discovery::objects::Key;
use pacing::RateLimiter;
use queue::Queue;

/// Maximum number of concurrent requests.
const IN_FLIGHT: usize = 16;
/// Number of consecutive failures after which the API server counts as unreachable.
const UNREACHABLE_AFTER: u32 = 3;

#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send this request; pass the response to [`EntryWriter::on_response`].
    Send(Key, Request),
    /// This write and all older ones of the entry have been stored.
    Stored(Key, u64),
    /// Another writer changed this entry; `None`: deleted it.
    Observed(Key, Option<Box<Record>>),
    /// Another writer created, changed or deleted configuration in this object.
    ConfigChanged(Key),
}

/// An entry with a desired state, or one that must be read.
#[derive(Debug, Default)]
struct Pending {
    /// Desired state, and the sequence number of its write.
    desired: Option<(DesiredState, u64)>,
    applied: AppliedParts,
    /// True if the known object may be outdated.
    read: bool,
    attempts: u32,
    /// Request in flight, and the sequence number of its write.
    sent: Option<(Request, Option<u64>)>,
    /// Watch event that arrived while a request is in flight, which may have caused it: the object,
    /// and whether it exists.
    deferred_event: Option<(Value, bool)>,
}

#[derive(Debug)]
pub struct EntryWriter {
    replica: ReplicaContext,
    objects: ObjectCache,
    pending: BTreeMap<Key, Pending>,
    queue: Queue,
    rate: RateLimiter,
    in_flight: usize,
    /// Consecutive failures of the API server; no request is sent before `paused_until`.
    failures: u32,
    paused_until: Duration,
    /// Resource version at which an entry was last found to belong to another writer.
    owned_by_other: BTreeMap<Key, Option<String>>,
}

impl EntryWriter {
    /// Allows `per_second` writes per second, and as many at once.
    pub fn new(replica: ReplicaContext, per_second: NonZeroU32) -> Self {
        let rate = RateLimiter::new(Duration::from_secs(1) / per_second.get(), per_second.get());
        Self {
            replica,
            objects: ObjectCache::default(),
            pending: BTreeMap::new(),
            queue: Queue::default(),
            rate,
            in_flight: 0,
            failures: 0,
            paused_until: Duration::ZERO,
            owned_by_other: BTreeMap::new(),
        }
    }

    pub fn objects(&self) -> &ObjectCache {
        &self.objects
    }

    /// Returns the number of entries that do not have their desired state yet.
    pub fn pending_count(&self) -> usize {
        self.pending.values().filter(|pending| pending.desired.is_some()).count()
    }

    /// True after repeated failures of the API server.
    pub fn is_unreachable(&self) -> bool {
        self.failures >= UNREACHABLE_AFTER
    }

    pub fn set_alive(&mut self, alive: BTreeSet<String>) {
        self.replica.alive = alive;
    }

    /// Sets the desired state of an entry; `write` is its sequence number.
    pub fn set_desired(&mut self, key: Key, write: u64, desired: DesiredState) {
        let current = self.objects.get(&key).map(Arc::as_ref);
        let is_urgent = is_urgent(current, &desired);
        let has_spec = |record: &Record| current.is_some_and(|object| object::has_spec(object, record));
        let spec = matches!(&desired, DesiredState::Put(record) if has_spec(record));
        let pending = self.pending.entry(key.clone()).or_default();
        pending.applied = AppliedParts { spec, ..AppliedParts::default() };
        pending.desired = Some((desired, write));
        if pending.sent.is_none() {
            self.queue.push(key, is_urgent);
        }
    }

    /// Processes a complete list of all namespaces or of one: objects that it does not contain are
    /// read.
    pub fn list_completed(&mut self, namespace: Option<&str>, keys: &BTreeSet<Key>) {
        for key in self.objects.missing(namespace, keys) {
            let pending = self.pending.entry(key.clone()).or_default();
            pending.read = true;
            if pending.sent.is_none() {
                self.queue.push(key, true);
            }
        }
    }

    /// Processes an object from the watch; if it no longer exists, `object` is its last state.
    pub fn object_changed(&mut self, key: Key, object: Value, exists: bool) -> Vec<Effect> {
        if let Some(pending) = self.pending.get_mut(&key).filter(|pending| pending.sent.is_some()) {
            pending.deferred_event = Some((object, exists));
            return Vec::new();
        }
        let before = self.objects.get(&key).cloned();
        let changed =
            if exists { self.objects.upsert(&key, object) } else { self.objects.remove(&key, &object) };
        if !changed {
            return Vec::new();
        }
        if let Some(pending) = self.pending.get_mut(&key) {
            pending.applied.reset();
        }
        self.change_effects(key, before.as_deref())
    }

    /// Returns the effects of a changed object for the registry.
    fn change_effects(&self, key: Key, before: Option<&Value>) -> Vec<Effect> {
        let now = self.objects.get(&key).map(Arc::as_ref);
        let record = |object: Option<&Value>| {
            object.map(|object| Record { resource_version: None, ..object::record(object) })
        };
        let mut effects = Vec::new();
        if object::user_fields(before) != object::user_fields(now) {
            effects.push(Effect::ConfigChanged(key.clone()));
        }
        if record(before) != record(now) {
            effects.push(Effect::Observed(key, now.map(|object| Box::new(object::record(object)))));
        }
        effects
    }

    fn in_flight_limit(&self) -> usize {
        if self.failures > 0 { 1 } else { IN_FLIGHT }
    }

    /// Returns when [`Self::step`] has something to do without other events.
    pub fn next_due(&self) -> Option<Duration> {
        let due = self.queue.next_due().filter(|_| self.in_flight < self.in_flight_limit())?;
        Some(due.max(self.paused_until))
    }

    /// Returns everything that can be done now.
    pub fn step(&mut self, now: Duration) -> Vec<Effect> {
        let mut effects = Vec::new();
        while self.in_flight < self.in_flight_limit() && now >= self.paused_until {
            let Some((position, key)) = self.queue.pop(now) else { break };
            match self.next_effect(now, &key) {
                Ok(effect) => effects.extend(effect),
                Err(ready) => {
                    self.queue.push_back_until((position, key), ready);
                    break;
                }
            }
        }
        effects
    }

    /// Sends the next request of one entry, or completes it. Returns the time of the next token as
    /// error if the rate limit is reached.
    fn next_effect(&mut self, now: Duration, key: &Key) -> Result<Option<Effect>, Duration> {
        let Some(pending) = self.pending.get_mut(key).filter(|pending| pending.sent.is_none()) else {
            return Ok(None);
        };
        let write = pending.desired.as_ref().map(|(_, write)| *write);
        let request = match &pending.desired {
            _ if pending.read => Request::Read,
            None => {
                self.pending.remove(key);
                return Ok(None);
            }
            Some((desired, write)) => {
                let current = self.objects.get(key).map(Arc::as_ref);
                match decide(key, current, desired, &self.replica, pending.applied) {
                    Step::UpToDate => {
                        let stored = Effect::Stored(key.clone(), *write);
                        self.owned_by_other.remove(key);
                        self.pending.remove(key);
                        return Ok(Some(stored));
                    }
                    Step::OwnedByOther => return Ok(self.report_other_owner(now, key)),
                    Step::Send(request) => {
                        self.rate.take(now)?;
                        request
                    }
                }
            }
        };
        pending.sent = Some((request.clone(), write));
        self.in_flight += 1;
        Ok(Some(Effect::Send(key.clone(), request)))
    }

    /// Lets the registry decide again; if nothing has changed since the last time, only after a
    /// pause.
    fn report_other_owner(&mut self, now: Duration, key: &Key) -> Option<Effect> {
        let current = self.objects.get(key);
        let version = current.and_then(|object| object::version(object)).map(str::to_owned);
        if self.owned_by_other.get(key) == Some(&version) {
            self.owned_by_other.remove(key);
            self.queue.delay(key.clone(), now + backoff::MAX);
            return None;
        }
        let record = current.map(|object| Box::new(object::record(object)));
        self.owned_by_other.insert(key.clone(), version);
        self.pending.remove(key);
        Some(Effect::Observed(key.clone(), record))
    }
}

#[cfg(test)]
mod tests;
