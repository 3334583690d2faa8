//! Processes the responses of the API server.

use std::time::Duration;

use serde_json::Value;

use super::{Effect, EntryWriter};
use crate::store::kubernetes::backoff;
use crate::store::kubernetes::request::{ApiError, Request};
use discovery::objects::Key;

/// How often the delay doubles after conflicts. It stays short, since the API server is reachable,
/// and a frequent writer would otherwise delay our write more and more.
const MAX_CONFLICT_DOUBLINGS: u32 = 2;

impl EntryWriter {
    /// Processes the response to the request in flight for an entry.
    pub fn on_response(&mut self, now: Duration, key: Key, response: Result<Value, ApiError>) -> Vec<Effect> {
        let Some(pending) = self.pending.get_mut(&key) else { return Vec::new() };
        let Some((request, write)) = pending.sent.take() else { return Vec::new() };
        self.in_flight -= 1;
        let deferred_event = pending.deferred_event.take();
        let is_newest = write == pending.desired.as_ref().map(|(_, write)| *write);
        let before = self.objects.get(&key).cloned();
        if !matches!(response, Err(ApiError::Unreachable(_))) {
            self.failures = 0;
        }
        let mut delay = None;
        match response {
            Ok(object) => {
                pending.read = false;
                if request != Request::Read {
                    pending.attempts = 0;
                }
                if is_newest {
                    pending.applied.main |= matches!(request, Request::Replace(_) | Request::Create(_));
                    pending.applied.status |= matches!(request, Request::ReplaceStatus(_));
                }
                self.objects.upsert(&key, object);
            }
            Err(ApiError::NotFound) => {
                pending.read = false;
                // The namespace does not exist; it may be created later.
                delay = matches!(request, Request::Create(_)).then_some(pending.attempts);
                self.objects.remove_deleted(&key);
            }
            Err(ApiError::Conflict) => {
                pending.read = true;
                pending.applied.reset();
                delay = pending.attempts.checked_sub(1).map(|attempts| attempts.min(MAX_CONFLICT_DOUBLINGS));
            }
            Err(ApiError::Rejected(_)) => delay = Some(pending.attempts),
            Err(ApiError::Unreachable(_)) => {
                pending.read = true;
                self.paused_until = now + backoff::delay(self.failures);
                self.failures = self.failures.saturating_add(1);
            }
        }
        if delay.is_some() || pending.read {
            pending.attempts = pending.attempts.saturating_add(1);
        }
        match delay {
            Some(attempts) => self.queue.delay(key.clone(), now + backoff::delay(attempts)),
            None => self.queue.push(key.clone(), true),
        }
        let mut effects = match request {
            Request::Read => self.change_effects(key.clone(), before.as_deref()),
            // The registry knows what it wrote.
            _ => Vec::new(),
        };
        if let Some((object, exists)) = deferred_event {
            effects.extend(self.object_changed(key, object, exists));
        }
        effects
    }
}
