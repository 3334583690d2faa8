//! Acknowledges reports once they are stored, and records the agents' acknowledgements of probes.

use super::storage::Ack;
use super::{Effect, Entries, Event, StreamCommand, StreamId};
use crate::objects::Key;

impl Entries {
    /// Acknowledges a report as soon as the current state of the entry is stored.
    pub(super) fn acknowledge_when_stored(&mut self, key: &Key, ack: Ack) {
        let ack = self.entries.get_mut(key).and_then(|entry| entry.storage.acknowledge(ack));
        self.acknowledge(ack);
    }

    /// Handles the confirmation of a write by the store.
    pub(super) fn stored(&mut self, key: &Key, write: u64) {
        let ack = self.entries.get_mut(key).and_then(|entry| entry.storage.confirm(write));
        self.acknowledge(ack);
    }

    fn acknowledge(&mut self, ack: Option<Ack>) {
        if let Some(Ack { stream, epoch, generation }) =
            ack.filter(|ack| self.streams.get(ack.stream).is_some())
        {
            self.send(stream, StreamCommand::Ack { epoch, generation });
        }
    }

    /// Records that the agent accepted or rejected the probe of a hello.
    pub(super) fn probe_answered(&mut self, id: StreamId, answer: Result<String, String>) {
        let Some(key) = self.streams.get(id).and_then(|stream| stream.bound.clone()) else { return };
        let Some(entry) = self.entries.get_mut(&key).filter(|entry| entry.session.reporter() == Some(id))
        else {
            return;
        };
        match answer {
            Ok(version) => entry.session.probe_acked(&version),
            Err(text) => {
                let nack = entry.session.probe_nacked(&text);
                self.effects.extend(nack.map(|text| Effect::Event(Event::ProbeNacked { key, text })));
            }
        }
    }
}
