//! The events of a Pod or of its owner.

use serde::Serialize;
use serde_json::Value;

use crate::clock::Timestamp;
use crate::wording;

/// Kubernetes writes it before a message that stands for several similar ones.
const COMBINED: &str = "(combined from similar events): ";

/// Lines in which k8s.io/mount-utils repeats its call, with paths that differ for each Pod.
const CALLS: [&str; 3] = ["Mounting command: ", "Mounting arguments: ", "Unmounting arguments: "];

/// One event, in the order of their last occurrence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    #[serde(rename = "type")]
    pub kind: String,
    pub reason: String,
    /// The container that it is about; empty if it is about the Pod.
    pub container: String,
    pub message: String,
    pub count: u64,
    /// The time of the first occurrence, RFC 3339.
    pub first: String,
    /// The time of the newest occurrence, RFC 3339.
    pub last: String,
}

impl Event {
    /// Returns the events sorted by their last occurrence, the newest last.
    pub(crate) fn all(items: &[Value]) -> Vec<Self> {
        let mut events: Vec<Self> = items.iter().map(Self::read).collect();
        events.sort_by_key(|event| Timestamp::parse(&event.last));
        events
    }

    fn read(item: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let first_of = |values: [&Value; 4]| {
            text(values.into_iter().find(|value| value.is_string()).unwrap_or(&Value::Null))
        };
        let (series, created) = (&item["series"], &item["metadata"]["creationTimestamp"]);
        let path = item["involvedObject"]["fieldPath"].as_str().unwrap_or_default();
        let container = path.split_once('{').and_then(|(_, rest)| rest.strip_suffix('}'));
        let message = text(&item["message"]);
        Self {
            kind: text(&item["type"]),
            reason: text(&item["reason"]),
            container: container.unwrap_or_default().to_owned(),
            message: message.strip_prefix(COMBINED).unwrap_or(&message).to_owned(),
            count: series["count"].as_u64().or_else(|| item["count"].as_u64()).unwrap_or(1).max(1),
            first: first_of([&item["firstTimestamp"], &item["eventTime"], created, created]),
            last: first_of([
                &series["lastObservedTime"],
                &item["lastTimestamp"],
                &item["eventTime"],
                created,
            ]),
        }
    }

    pub(crate) fn is_warning(&self) -> bool {
        self.kind == "Warning"
    }

    /// Returns the message in one line, without the calls of mount-utils: the last line often says why
    /// they failed.
    pub(crate) fn whole(&self) -> String {
        let is_call = |line: &&str| CALLS.iter().any(|call| line.trim().starts_with(call));
        let lines: Vec<&str> = self.message.lines().filter(|line| !is_call(line)).collect();
        wording::one_line(&lines.join("\n"))
    }

    /// Returns the first line of the message.
    pub(crate) fn line(&self) -> &str {
        self.message.trim().lines().next().unwrap_or_default()
    }
}
