//! The Pod has no node.

use crate::container::list;
use crate::finding::{Code, Finding};
use crate::view::View;
use crate::wording::{self, Wording, scheduler};

const UNKNOWN: &str = "the message is that of the scheduler or of a plugin, and is not known here";
const DEFAULT_SCHEDULER: &str = "default-scheduler";

pub(super) fn find(view: &View<'_>) -> Vec<Finding> {
    let scheduled = view.condition("PodScheduled");
    if scheduled["status"] != "False" {
        return no_scheduler(view).into_iter().collect();
    }
    let message = scheduled["message"].as_str().unwrap_or_default();
    let finding = if scheduled["reason"] == "SchedulingGated" {
        let gates: Vec<&str> = list(&view.pod["spec"]["schedulingGates"])
            .iter()
            .filter_map(|gate| gate["name"].as_str())
            .collect();
        Finding::broken(
            Code::Scheduling,
            format!("the Pod waits for its scheduling gates {}", gates.join(", ")).trim_end(),
            "the controller that set the gate must remove it from spec.schedulingGates",
        )
    } else {
        let advice = advice(view, message);
        let is_known = advice.is_some();
        let text = format!("no node takes the Pod: {message}");
        Finding::broken(Code::Scheduling, text, advice.unwrap_or_else(|| unknown(view))).certain_if(is_known)
    };
    vec![finding]
}

fn scheduler_name<'a>(view: &View<'a>) -> &'a str {
    view.pod["spec"]["schedulerName"].as_str().unwrap_or(DEFAULT_SCHEDULER)
}

fn unknown(view: &View<'_>) -> String {
    match scheduler_name(view) {
        DEFAULT_SCHEDULER => UNKNOWN.to_owned(),
        name => format!("the message is that of the scheduler {name}: look at its log and its documentation"),
    }
}

/// Returns what to do about the reasons in the message; `None` if it has none that is known.
fn advice(view: &View<'_>, message: &str) -> Option<String> {
    let mut reasons = scheduler::reasons(message);
    let is_of_daemon_set =
        list(&view.pod["metadata"]["ownerReferences"]).iter().any(|owner| owner["kind"] == "DaemonSet");
    if is_of_daemon_set && reasons.len() > 1 {
        reasons.retain(|reason| *reason != scheduler::NODE_AFFINITY);
    }
    let is_found =
        |wording: &&Wording| reasons.iter().any(|reason| wording::matches(wording.pattern, reason));
    let known = scheduler::REASONS.iter().find(is_found)?;
    if known.pattern != scheduler::INSUFFICIENT {
        return Some(known.advice.to_owned());
    }
    let resources: Vec<&str> =
        reasons.iter().filter_map(|reason| reason.strip_prefix("Insufficient ")).collect();
    Some(insufficient(&resources, is_of_daemon_set, reasons.as_slice()))
}

/// A node that is too full may lack something else too, which the scheduler has not looked at.
fn insufficient(resources: &[&str], is_of_daemon_set: bool, reasons: &[&str]) -> String {
    let has = |is: fn(&str) -> bool| resources.iter().any(|resource| is(resource));
    let of_sidecar = has(|resource| matches!(resource, "cpu" | "memory" | "ephemeral-storage"));
    let sidecar = if of_sidecar { ", which include those of the sidecar," } else { "" };
    // Kubernetes' own resources have no domain in their name.
    let of_plugin = has(|resource| resource.contains('/'));
    let device = if of_plugin { "; if no node has the resource, does its device plugin run?" } else { "" };
    let lower = format!("lower the requests of the Pod for {}{sidecar}", resources.join(" and "));
    if is_of_daemon_set {
        return format!("{lower} or remove Pods from the node that the Pod is for{device}");
    }
    let of_others = scheduler::REASONS
        .iter()
        .filter(|wording| wording.pattern != scheduler::INSUFFICIENT && !scheduler::is_of_node(wording))
        .find(|wording| reasons.iter().any(|reason| wording::matches(wording.pattern, reason)));
    let others = of_others.map(|other| format!(". Of other nodes: {}", other.advice)).unwrap_or_default();
    format!("{lower} or add nodes{device}{others}")
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
    let scheduler = scheduler_name(view);
    Some(Finding::broken(
        Code::Scheduling,
        format!("the scheduler {scheduler} has not looked at the Pod"),
        "does that scheduler run? Compare spec.schedulerName",
    ))
}
