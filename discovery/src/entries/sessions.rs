//! Selects the stream that reports on an entry, and sends hellos to app-health agents.

use std::sync::Arc;

use workload_health::text::printable;

use super::name::RegistrationTarget;
use super::session::{Agent, NewestReport};
use super::{Entries, Event, StreamCommand, StreamId};
use crate::objects::{Group, Key};

impl Entries {
    /// Makes this stream the only one that reports on the entry.
    pub(super) fn begin_session(&mut self, id: StreamId, key: &Key) {
        let at = self.at;
        let Some(stream) = self.streams.get(id) else { return };
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.record.session += 1;
        entry.record.controller = Some(self.ownership.controller.clone());
        entry.record.connected_at = Some(at.wall);
        entry.record.disconnected_at = None;
        entry.storage.session_began();
        let (peer, app_health) = (stream.peer, stream.node.app_health);
        let agent = Agent {
            stream: id,
            app_health,
            version: stream.node.agent_version.as_deref().map(printable),
            peer,
            session: entry.record.session,
            accepted: NewestReport::default(),
            last_report: None,
            probe_version: None,
            probe_nack: None,
        };
        if app_health {
            entry.liveness.reported(&self.settings, at.now);
        } else {
            // Istio's agent reports only changes.
            entry.liveness.expect_no_report();
        }
        if let Some(old) = entry.session.begin(agent, at.now) {
            self.emit(Event::ReporterReplaced { key: key.clone(), peer });
            if old.is_duplicate {
                self.emit(Event::DuplicateAgent { key: key.clone() });
            }
            self.supersede(old.stream);
        }
        self.hello(id);
    }

    /// Sends the agent its session and probe unless the last hello contained them.
    pub(super) fn hello(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(id).filter(|stream| stream.node.app_health) else { return };
        let entry = stream.bound.as_ref().and_then(|key| self.entries.get(key));
        let session = entry
            .filter(|entry| entry.session.reporter() == Some(id))
            .map_or(0, |entry| entry.record.session);
        let group = match &stream.target {
            Some(RegistrationTarget::Group { group, .. }) if session > 0 => {
                self.config.groups.get(group).cloned()
            }
            _ => None,
        };
        let is_told = stream.last_hello.as_ref().is_some_and(|(told, probe)| {
            let version = |group: &Option<Arc<Group>>| {
                group.as_ref().map(|group| group.probe_version.clone()).unwrap_or_default()
            };
            *told == session && version(probe) == version(&group)
        });
        if is_told {
            return;
        }
        stream.last_hello = Some((session, group.clone()));
        let heartbeat = self.settings.heartbeat;
        self.send(id, StreamCommand::Hello { session, heartbeat, probe: group });
    }
}
