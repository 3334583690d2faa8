//! Selects the stream that reports on an entry, and sends hellos to app-health agents.

use std::sync::Arc;
use std::time::Duration;

use workload_health::health_report::printable;

use super::entry::{Agent, Entry};
use super::name::RegistrationTarget;
use super::{Entries, Event, StreamCommand, StreamId};
use crate::objects::{Group, Key};

/// More reporting streams than this within a minute mean that two machines report on one entry.
const MAX_REPLACEMENTS_PER_MINUTE: usize = 5;
const MINUTE: Duration = Duration::from_secs(60);

impl Entries {
    /// Makes this stream the only one that reports on the entry.
    pub(super) fn begin_session(&mut self, id: StreamId, key: &Key) {
        let at = self.at;
        let Some(stream) = self.streams.get(&id) else { return };
        let (peer, app_health, version) =
            (stream.peer, stream.node.app_health, stream.node.agent_version.as_deref().map(printable));
        let Some(entry) = self.entries.get_mut(key) else { return };
        let old = entry.reporter.replace(id).filter(|old| *old != id);
        entry.record.session += 1;
        entry.record.controller = Some(self.ownership.controller.clone());
        entry.record.connected_at = Some(at.wall);
        entry.record.disconnected_at = None;
        entry.session_write = u64::MAX;
        entry.last_report_kind = None;
        let session = entry.record.session;
        entry.agent = Some(Agent {
            stream: id,
            app_health,
            version,
            peer,
            session,
            accepted: None,
            last_report: None,
            probe_version: None,
            probe_nack: None,
        });
        entry.silence_deadline = app_health.then(|| self.settings.silence_from(at.now, entry.is_restored));
        if let Some(old) = old {
            entry.streams.remove(&old);
            let is_duplicate = record_replacement(entry, at.now);
            self.emit(Event::ReporterReplaced { key: key.clone(), peer });
            if is_duplicate {
                self.emit(Event::DuplicateAgent { key: key.clone() });
            }
            self.supersede(old);
        }
        self.hello(id);
    }

    /// Sends the agent its session and probe unless the last hello contained them.
    pub(super) fn hello(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.node.app_health) else { return };
        let entry = stream.bound.as_ref().and_then(|key| self.entries.get(key));
        let session =
            entry.filter(|entry| entry.reporter == Some(id)).map_or(0, |entry| entry.record.session);
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

/// Counts a replaced reporting stream. Returns true if there were too many.
fn record_replacement(entry: &mut Entry, now: Duration) -> bool {
    entry.replacements.retain(|at| now.saturating_sub(*at) < MINUTE);
    entry.replacements.push_back(now);
    let is_duplicate = entry.replacements.len() > MAX_REPLACEMENTS_PER_MINUTE;
    if is_duplicate {
        // Counting starts again, so that not every further replacement emits the event.
        entry.replacements.clear();
    }
    is_duplicate
}
