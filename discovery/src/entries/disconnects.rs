//! Ends streams, both those closed by the peer and those rejected by the server.

use std::time::Duration;

use super::{Code, Entries, Event, RejectionReason, StreamCommand, StreamId};
use crate::objects::Key;

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
        self.streams.remove(stream);
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
        let Some(stream) = self.streams.remove(id) else { return };
        let Some(key) = stream.bound else { return };
        self.leave_entry(id, &key, stream.opened);
    }

    /// Removes a stream from its entry.
    pub(super) fn leave_entry(&mut self, id: StreamId, key: &Key, opened: Duration) {
        let at = self.at;
        let Some(entry) = self.entries.get_mut(key) else { return };
        let Some(was_reporter) = entry.session.detach(id) else { return };
        entry.liveness.stream_lost(at.now.saturating_sub(opened));
        let is_owned = entry.record.controller.as_ref() == Some(&self.ownership.controller);
        if !entry.session.is_connected() && is_owned {
            entry.record.disconnected_at = Some(at.wall);
            entry.liveness.last_stream_lost(&self.settings, at.now);
        }
        if was_reporter {
            entry.liveness.reporter_lost(&self.settings, at.now);
        }
        self.reconcile(key);
    }
}
