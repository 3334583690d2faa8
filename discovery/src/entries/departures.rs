//! Streams go: by themselves, or because they broke a rule.

use std::time::Duration;

use super::{Code, Effect, Entries, Event, Refusal, StreamId};
use crate::objects::Key;

/// After so long a stream an agent that loses it begins anew with short pauses, so the grace of every day is enough for it. One that
/// lost a shorter stream may stay away for as long as before.
const SETTLED: Duration = Duration::from_secs(30);

impl Entries {
    /// Ends a stream that broke a rule.
    pub(super) fn refuse(&mut self, stream: StreamId, code: Code, refusal: Refusal, text: String) {
        self.note(Event::Refused { stream, refusal });
        self.end(stream, code, text);
    }

    /// Ends a stream; what it was of, it is no more.
    pub(super) fn end(&mut self, stream: StreamId, code: Code, text: String) {
        self.effects.push(Effect::Close { stream, code, text });
        self.forget(stream);
    }

    /// A stream ended by itself.
    pub(super) fn close(&mut self, id: StreamId) {
        // A goodbye may have come faster than it was let through.
        self.apply_now(id);
        self.forget(id);
    }

    /// Takes a stream out of everything.
    pub(super) fn forget(&mut self, id: StreamId) {
        let Some(stream) = self.streams.remove(&id) else { return };
        if let Some(wait) = &stream.waits
            && let Some(waiting) = self.waiting.get_mut(wait)
        {
            waiting.remove(&id);
            if waiting.is_empty() {
                self.waiting.remove(wait);
            }
        }
        let Some(key) = stream.bound else { return };
        self.leave(id, &key, stream.opened);
    }

    /// The entry has this stream no more.
    fn leave(&mut self, id: StreamId, key: &Key, opened: Duration) {
        let at = self.at;
        let Some(entry) = self.entries.get_mut(key) else { return };
        if !entry.streams.remove(&id) {
            return;
        }
        // Its agent comes back at its quickest again.
        entry.is_restored &= at.now.saturating_sub(opened) < SETTLED;
        let was_reporter = entry.reporter.take_if(|reporter| *reporter == id).is_some();
        let deadline = self.settings.grace_from(at.now, entry.is_restored);
        let is_mine = entry.record.controller.as_ref() == Some(&self.controller);
        if entry.streams.is_empty() && is_mine {
            entry.record.disconnected_at = Some(at.wall);
            entry.lost = Some(deadline);
        }
        // One that went before the others is missed since then, however often those come and go.
        if was_reporter {
            entry.mute = Some(deadline);
        }
        self.settle(key);
        self.arm(key);
    }
}
