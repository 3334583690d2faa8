//! Ends streams, both those closed by the peer and those rejected by the server.

use std::time::Duration;

use super::{Code, Entries, Event, RejectionReason, StreamCommand, StreamId};
use crate::objects::Key;

/// An agent that loses a stream older than this reconnects with short backoff, so the normal grace
/// period applies to it. An agent that loses a younger stream may still have a long backoff.
const STABLE_STREAM: Duration = Duration::from_secs(30);

impl Entries {
    /// Rejects a stream that violates a rule.
    pub(super) fn reject(&mut self, stream: StreamId, code: Code, reason: RejectionReason, text: String) {
        self.emit(Event::Rejected { stream, reason });
        self.end(stream, code, text);
    }

    /// Closes a stream and removes it from its entry.
    pub(super) fn end(&mut self, stream: StreamId, code: Code, text: String) {
        self.send(stream, StreamCommand::Close { code, text });
        self.remove_stream(stream);
    }

    /// Closes a stream that a newer one has replaced as the reporting stream.
    pub(super) fn supersede(&mut self, stream: StreamId) {
        self.streams.remove(&stream);
        let text = "superseded".to_owned();
        self.send(stream, StreamCommand::Close { code: Code::Aborted, text });
    }

    /// Handles a stream that was closed by the peer.
    pub(super) fn close(&mut self, id: StreamId) {
        // A final report may still be delayed by the rate limit.
        self.apply_pending_now(id);
        self.remove_stream(id);
    }

    /// Removes a stream from the state.
    pub(super) fn remove_stream(&mut self, id: StreamId) {
        self.stop_waiting(id);
        let Some(stream) = self.streams.remove(&id) else { return };
        let Some(key) = stream.bound else { return };
        self.leave_entry(id, &key, stream.opened);
    }

    /// Removes a stream from its entry.
    fn leave_entry(&mut self, id: StreamId, key: &Key, opened: Duration) {
        let at = self.at;
        let Some(entry) = self.entries.get_mut(key) else { return };
        if !entry.streams.remove(&id) {
            return;
        }
        // From now on its agent reconnects with short backoff.
        entry.is_restored &= at.now.saturating_sub(opened) < STABLE_STREAM;
        let was_reporter = entry.reporter.take_if(|reporter| *reporter == id).is_some();
        let deadline = self.settings.grace_from(at.now, entry.is_restored);
        let is_owned = entry.record.controller.as_ref() == Some(&self.ownership.controller);
        if entry.streams.is_empty() && is_owned {
            entry.record.disconnected_at = Some(at.wall);
            entry.disconnect_deadline = Some(deadline);
        }
        // The deadline of a lost reporting stream is not moved when other streams of the entry end
        // later.
        if was_reporter {
            entry.silence_deadline = Some(deadline);
        }
        self.reconcile(key);
    }
}
