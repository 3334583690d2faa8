//! A situation with everything that several causes look at.

use serde_json::Value;

use crate::clock::Timestamp;
use crate::container::{Container, Role, list};
use crate::event::Event;
use crate::injection::{self, Injection};
use crate::probes::{self, ProbeRow};
use crate::sidecar::{self, Sidecar};
use crate::situation::{Fetched, Situation};

/// Maximum length of a line of a log, in characters.
const LINE: usize = 200;

pub(crate) struct View<'a> {
    pub(crate) situation: &'a Situation,
    pub(crate) pod: &'a Value,
    pub(crate) now: Option<Timestamp>,
    pub(crate) containers: Vec<Container<'a>>,
    pub(crate) events: Vec<Event>,
    pub(crate) probes: Vec<ProbeRow>,
    pub(crate) sidecar: Option<Sidecar>,
    pub(crate) injection: Injection,
}

impl<'a> View<'a> {
    pub(crate) fn new(situation: &'a Situation, pod: &'a Value) -> Self {
        let containers = Container::all(pod);
        let events = Event::all(situation.events.found().map_or(&[], Vec::as_slice));
        Self {
            situation,
            pod,
            now: Timestamp::parse(&situation.now),
            probes: probes::rows(situation, pod, &containers, &events),
            sidecar: sidecar::read(situation, &containers),
            injection: injection::read(situation, pod, &containers),
            containers,
            events,
        }
    }

    pub(crate) fn phase(&self) -> &'a str {
        self.pod["status"]["phase"].as_str().unwrap_or_default()
    }

    /// Returns a condition of the Pod.
    pub(crate) fn condition(&self, kind: &str) -> &'a Value {
        let conditions = list(&self.pod["status"]["conditions"]);
        conditions.iter().find(|condition| condition["type"] == kind).unwrap_or(&Value::Null)
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.condition("Ready")["status"] == "True"
    }

    /// Returns true if kubelet has ended the Pod, so that the exit codes of its containers say
    /// nothing more.
    pub(crate) fn has_failed_as_a_whole(&self) -> bool {
        self.phase() == "Failed" && self.pod["status"]["reason"].is_string()
    }

    pub(crate) fn has_controller(&self) -> bool {
        list(&self.pod["metadata"]["ownerReferences"]).iter().any(|owner| owner["controller"] == true)
    }

    pub(crate) fn is_terminating(&self) -> bool {
        self.pod["metadata"]["deletionTimestamp"].is_string()
    }

    /// Returns the seconds since a time stamp; `None` if it is not one.
    pub(crate) fn seconds_since(&self, stamp: &str) -> Option<u64> {
        Some(Timestamp::parse(stamp)?.seconds_until(self.now?))
    }

    /// Returns the seconds to a time stamp; 0 if it is over.
    pub(crate) fn seconds_until(&self, stamp: &str) -> Option<u64> {
        Some(self.now?.seconds_until(Timestamp::parse(stamp)?))
    }

    /// Returns the newest event with this reason.
    pub(crate) fn last_event(&self, reasons: &[&str]) -> Option<&Event> {
        self.events.iter().rev().find(|event| reasons.contains(&event.reason.as_str()))
    }

    pub(crate) fn sidecar_container(&self) -> Option<&Container<'a>> {
        self.containers.iter().find(|container| container.role == Role::Proxy)
    }

    /// Returns the last lines that the previous run of a container has logged, the first 200
    /// characters of each.
    pub(crate) fn last_lines(&self, container: &str) -> Vec<String> {
        let log = self.situation.previous_logs.get(container).and_then(Fetched::found);
        let lines = log.map(|log| log.trim_end().lines()).into_iter().flatten();
        lines.filter(|line| !line.is_empty()).map(|line| line.chars().take(LINE).collect()).collect()
    }

    pub(crate) fn last_line(&self, container: &str) -> Option<String> {
        self.last_lines(container).pop()
    }
}
