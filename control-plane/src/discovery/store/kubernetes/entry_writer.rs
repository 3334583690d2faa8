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

use super::decision::{AppliedParts, DesiredState, ReplicaContext, Step, decide};
use super::object;
use super::object_cache::ObjectCache;
use super::rate::Rate;
use discovery::entries::Record;
use discovery::objects::Key;
use queue::Queue;

pub use request::{ApiResult, Effect, Request};

/// Maximum number of concurrent requests.
const IN_FLIGHT: usize = 16;
/// Backoff between attempts: the first delay, which doubles, and the maximum.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// How often the delay doubles after conflicts; the API server is reachable, so it stays short.
const MAX_CONFLICT_DOUBLINGS: u32 = 2;

/// Number of consecutive failures after which the API server counts as unreachable.
const UNREACHABLE_AFTER: u32 = 3;

/// An entry with a desired state, or one that must be read.
#[derive(Debug, Default)]
struct Pending {
    /// Desired state, and the sequence number of its write.
    desired: Option<(DesiredState, u64)>,
    /// True if the object already had this spec when the desired state was set.
    same_spec: bool,
    applied: AppliedParts,
    /// True if the known object may be outdated.
    read: bool,
    attempts: u32,
    /// Request in flight, and the sequence number of its write.
    sent: Option<(Request, Option<u64>)>,
    /// Watch event that arrived while a request is in flight; it may be caused by that request.
    deferred_event: Option<WatchedObject>,
}

#[derive(Debug)]
enum WatchedObject {
    Applied(Value),
    Deleted(Value),
}

#[derive(Debug)]
pub struct EntryWriter {
    replica: ReplicaContext,
    objects: ObjectCache,
    pending: BTreeMap<Key, Pending>,
    queue: Queue,
    rate: Rate,
    in_flight: usize,
    /// Consecutive failures of the API server; no request is sent before `paused_until`.
    failures: u32,
    paused_until: Duration,
    /// Resource version at which an entry was last found to belong to another writer.
    owned_by_other: BTreeMap<Key, Option<String>>,
}

fn backoff(attempts: u32) -> Duration {
    (BACKOFF.0 * 2_u32.saturating_pow(attempts.min(16))).min(BACKOFF.1)
}

impl EntryWriter {
    /// Allows `per_second` writes per second.
    pub fn new(replica: ReplicaContext, per_second: NonZeroU32) -> Self {
        Self {
            replica,
            objects: ObjectCache::default(),
            pending: BTreeMap::new(),
            queue: Queue::default(),
            rate: Rate::new(per_second),
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

    /// Sets the replicas that are alive.
    pub fn set_alive(&mut self, alive: BTreeSet<String>) {
        self.replica.alive = alive;
    }

    /// Sets the desired state of an entry.
    pub fn set_desired(&mut self, key: Key, write: u64, desired: DesiredState) {
        let current = self.objects.get(&key).map(Arc::as_ref);
        let is_urgent = is_urgent(current, &desired);
        let pending = self.pending.entry(key.clone()).or_default();
        let has_spec = |record: &Record| current.is_some_and(|object| object::has_spec(object, record));
        pending.same_spec = matches!(&desired, DesiredState::Put(record) if has_spec(record));
        pending.desired = Some((desired, write));
        pending.applied = AppliedParts::default();
        if pending.sent.is_none() {
            self.queue.push(key, is_urgent);
        }
    }

    /// Processes an object from the watch.
    pub fn object_applied(&mut self, key: Key, object: Value) -> Vec<Effect> {
        self.process_event(key, WatchedObject::Applied(object))
    }

    /// Processes a deletion from the watch; `last` is the last state of the object.
    pub fn object_deleted(&mut self, key: Key, last: Value) -> Vec<Effect> {
        self.process_event(key, WatchedObject::Deleted(last))
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

    fn process_event(&mut self, key: Key, event: WatchedObject) -> Vec<Effect> {
        if let Some(pending) = self.pending.get_mut(&key).filter(|pending| pending.sent.is_some()) {
            pending.deferred_event = Some(event);
            return Vec::new();
        }
        let before = self.objects.get(&key).cloned();
        let changed = match event {
            WatchedObject::Applied(object) => self.objects.upsert(&key, object),
            WatchedObject::Deleted(last) => self.objects.remove(&key, &last),
        };
        if !changed {
            return Vec::new();
        }
        if let Some(pending) = self.pending.get_mut(&key) {
            // Another writer changed the object, so both parts may have to be written again.
            pending.applied = AppliedParts::default();
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

    /// Returns everything that can be done now.
    pub fn step(&mut self, now: Duration) -> Vec<Effect> {
        let mut effects = Vec::new();
        let limit = if self.failures > 0 { 1 } else { IN_FLIGHT };
        while self.in_flight < limit && now >= self.paused_until {
            let Some((key, is_urgent)) = self.queue.pop(now) else { break };
            if let Err(ready) = self.send_next(now, &key, &mut effects) {
                self.queue.push_back_until((key, is_urgent), ready);
                break;
            }
        }
        effects
    }

    /// Sends the next request of one entry, or completes it. Returns the time of the next token as
    /// error if the rate limit is reached.
    fn send_next(&mut self, now: Duration, key: &Key, effects: &mut Vec<Effect>) -> Result<(), Duration> {
        let Some(pending) = self.pending.get_mut(key).filter(|pending| pending.sent.is_none()) else {
            return Ok(());
        };
        let write = pending.desired.as_ref().map(|(_, write)| *write);
        let request = if pending.read {
            Request::Read
        } else {
            let Some((desired, write)) = &pending.desired else {
                self.pending.remove(key);
                return Ok(());
            };
            let current = self.objects.get(key).map(Arc::as_ref);
            let applied = AppliedParts { spec: pending.same_spec, ..pending.applied };
            match decide(key, current, desired, &self.replica, applied) {
                Step::UpToDate => {
                    effects.push(Effect::Stored(key.clone(), *write));
                    self.owned_by_other.remove(key);
                    self.pending.remove(key);
                    return Ok(());
                }
                Step::OwnedByOther => {
                    self.report_other_owner(now, key, effects);
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
    fn report_other_owner(&mut self, now: Duration, key: &Key, effects: &mut Vec<Effect>) {
        let current = self.objects.get(key);
        let version = current.and_then(|object| object::version(object)).map(str::to_owned);
        if self.owned_by_other.get(key) == Some(&version) {
            self.owned_by_other.remove(key);
            self.queue.delay(key.clone(), now + BACKOFF.1);
            return;
        }
        let record = current.map(|object| Box::new(object::record(object)));
        effects.push(Effect::Observed(key.clone(), record));
        self.owned_by_other.insert(key.clone(), version);
        self.pending.remove(key);
    }

    /// Processes the response to the request in flight for an entry.
    pub fn on_response(&mut self, now: Duration, key: Key, result: ApiResult) -> Vec<Effect> {
        let Some(pending) = self.pending.get_mut(&key) else { return Vec::new() };
        let Some((request, write)) = pending.sent.take() else { return Vec::new() };
        self.in_flight -= 1;
        let deferred_event = pending.deferred_event.take();
        let is_newest = write == pending.desired.as_ref().map(|(_, write)| *write);
        let before = self.objects.get(&key).cloned();
        if result != ApiResult::Unreachable {
            self.failures = 0;
        }
        let mut delay = None;
        match result {
            ApiResult::Object(object) => {
                pending.read = false;
                if request != Request::Read {
                    pending.attempts = 0;
                }
                if is_newest {
                    pending.applied.main |=
                        matches!(request, Request::Write(Step::Replace(_) | Step::Create(_)));
                    pending.applied.status |= matches!(request, Request::Write(Step::ReplaceStatus(_)));
                }
                self.objects.upsert(&key, *object);
            }
            ApiResult::NotFound => {
                pending.read = false;
                // The namespace does not exist; it may be created later.
                delay = matches!(request, Request::Write(Step::Create(_))).then_some(pending.attempts);
                self.objects.remove_deleted(&key);
            }
            ApiResult::Conflict => {
                pending.read = true;
                pending.applied = AppliedParts::default();
                // Capped, since a frequent writer would otherwise delay our write more and more.
                delay = pending.attempts.checked_sub(1).map(|attempts| attempts.min(MAX_CONFLICT_DOUBLINGS));
            }
            ApiResult::Rejected => delay = Some(pending.attempts),
            ApiResult::Unreachable => {
                pending.read = true;
                self.paused_until = now + backoff(self.failures);
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
        let is_ours = matches!(request, Request::Write(_));
        let mut effects =
            if is_ours { Vec::new() } else { self.change_effects(key.clone(), before.as_deref()) };
        if let Some(event) = deferred_event {
            effects.extend(self.process_event(key, event));
        }
        effects
    }

    /// Returns when [`Self::step`] has something to do without other events.
    pub fn next_due(&self) -> Option<Duration> {
        let limit = if self.failures > 0 { 1 } else { IN_FLIGHT };
        let due = self.queue.next_due().filter(|_| self.in_flight < limit)?;
        Some(due.max(self.paused_until))
    }
}

/// True if the desired state changes what other components act on, not only informative fields.
fn is_urgent(current: Option<&Value>, desired: &DesiredState) -> bool {
    let (Some(current), DesiredState::Put(record)) = (current, desired) else { return true };
    let known = object::record(current);
    let status =
        |record: &Record| record.condition.as_ref().map(|condition| (condition.status, condition.reason));
    known.session != record.session
        || known.controller != record.controller
        || known.auto != record.auto
        || status(&known) != status(record)
}

#[cfg(test)]
mod tests;
