//! Acknowledges reports once they are stored, and records the agents' acknowledgements of probes.

use workload_health::health_report::printable;

use super::entry::PendingAck;
use super::{Entries, Event, StreamCommand, StreamId};
use crate::objects::Key;

impl Entries {
    /// Acknowledges a report as soon as the current state of the entry is stored.
    pub(super) fn acknowledge_when_stored(
        &mut self,
        key: &Key,
        stream: StreamId,
        epoch: String,
        generation: u64,
    ) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if entry.stored >= entry.write {
            entry.pending_ack = None;
            self.send(stream, StreamCommand::Ack { epoch, generation });
        } else {
            entry.pending_ack = Some(PendingAck { stream, epoch, generation, write: entry.write });
        }
    }

    /// Records that the agent accepted or rejected the probe of a hello.
    pub(super) fn probe_answered(&mut self, id: StreamId, answer: Result<String, String>) {
        let Some(key) = self.streams.get(&id).and_then(|stream| stream.bound.clone()) else { return };
        let Some(entry) = self.entries.get_mut(&key).filter(|entry| entry.reporter == Some(id)) else {
            return;
        };
        let Some(agent) = &mut entry.agent else { return };
        match answer {
            Ok(version) => {
                agent.probe_version = Some(printable(&version));
                agent.probe_nack = None;
            }
            Err(text) => {
                let text = printable(&text);
                let is_new = agent.probe_nack.as_ref() != Some(&text);
                agent.probe_nack = Some(text.clone());
                if is_new {
                    self.emit(Event::ProbeNacked { key, text });
                }
            }
        }
    }

    /// Handles the confirmation of a write by the store.
    pub(super) fn stored(&mut self, key: &Key, write: u64) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.stored = entry.stored.max(write);
        let stored = entry.stored;
        let Some(ack) = entry.pending_ack.take_if(|ack| ack.write <= stored) else { return };
        if self.streams.contains_key(&ack.stream) {
            let PendingAck { stream, epoch, generation, .. } = ack;
            self.send(stream, StreamCommand::Ack { epoch, generation });
        }
    }
}
