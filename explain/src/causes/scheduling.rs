//! The Pod has no node.

use crate::finding::{Code, Finding};
use crate::view::View;
use crate::wording::{self, scheduler};

const UNKNOWN: &str = "the message is that of the scheduler or of a plugin, and is not known here";

pub(super) fn find(view: &View<'_>) -> Vec<Finding> {
    let scheduled = view.condition("PodScheduled");
    if scheduled["status"] != "False" {
        return no_scheduler(view).into_iter().collect();
    }
    let message = scheduled["message"].as_str().unwrap_or_default();
    let finding = if scheduled["reason"] == "SchedulingGated" {
        Finding::broken(
            Code::Scheduling,
            "the Pod waits for its scheduling gates",
            "the controller that set the gate must remove it from spec.schedulingGates",
        )
    } else {
        let reasons = scheduler::reasons(message);
        let known = scheduler::REASONS
            .iter()
            .find(|wording| reasons.iter().any(|reason| wording::matches(wording.pattern, reason)));
        let advice = known.map_or(UNKNOWN, |known| known.advice);
        Finding::broken(Code::Scheduling, format!("no node takes the Pod: {message}"), advice)
            .certain_if(known.is_some())
    };
    vec![finding]
}

/// A Pod that no scheduler has looked at.
fn no_scheduler(view: &View<'_>) -> Option<Finding> {
    let is_new = view.pod["metadata"]["creationTimestamp"]
        .as_str()
        .and_then(|stamp| view.seconds_since(stamp))
        .is_none_or(|age| age < 30);
    let has_node = view.pod["spec"]["nodeName"].is_string();
    if has_node || is_new || view.is_terminating() || view.phase() != "Pending" {
        return None;
    }
    let scheduler = view.pod["spec"]["schedulerName"].as_str().unwrap_or("default-scheduler");
    Some(Finding::broken(
        Code::Scheduling,
        format!("the scheduler {scheduler} has not looked at the Pod"),
        "does that scheduler run? Compare spec.schedulerName",
    ))
}
