//! The Pod ends or has ended.

use crate::clock::age;
use crate::container::list;
use crate::finding::{Code, Finding};
use crate::view::View;
use crate::wording::{self, failed_pod};

/// kubelet writes it before the message of a Pod that it does not admit.
const REJECTED: &str = "Pod was rejected: ";
/// How long after its deadline a deleted Pod counts as stuck, in seconds.
const OVERDUE: u64 = 30;

pub(super) fn find(view: &View<'_>) -> Vec<Finding> {
    let status = &view.pod["status"];
    match view.phase() {
        _ if view.is_terminating() => vec![terminating(view)],
        "Succeeded" => vec![Finding::note(
            Code::Completed,
            "the Pod has completed: all its containers exited with 0",
            "",
        )],
        "Failed" if status["reason"].is_string() => {
            let reason = status["reason"].as_str().unwrap_or_default();
            let message = status["message"].as_str().unwrap_or_default().trim();
            let line = format!("{reason}: {}", message.strip_prefix(REJECTED).unwrap_or(message));
            let known = wording::find(failed_pod::TABLE, &line);
            let advice = known.map_or(
                "the message is that of kubelet or of a controller, and is not known here",
                |known| known.advice,
            );
            let advice = format!("{advice}{}", replacement(view, reason));
            let text = format!("the Pod has failed: {reason}: {message}");
            vec![Finding::broken(Code::Failed, text, advice).certain_if(wording::is_certain(known))]
        }
        _ => Vec::new(),
    }
}

/// Returns whether a failed Pod is replaced: only a controller creates another one.
fn replacement(view: &View<'_>, reason: &str) -> &'static str {
    let is_of_job = list(&view.pod["metadata"]["ownerReferences"]).iter().any(|owner| owner["kind"] == "Job");
    match () {
        () if reason == "DeadlineExceeded" || is_of_job => "",
        () if view.has_controller() => "; its controller creates another Pod",
        () => "; it has no controller, so nothing creates another Pod",
    }
}

fn terminating(view: &View<'_>) -> Finding {
    let metadata = &view.pod["metadata"];
    // Kubernetes sets it to the time of the request plus the grace period.
    let overdue =
        metadata["deletionTimestamp"].as_str().and_then(|stamp| view.seconds_since(stamp)).unwrap_or(0);
    if overdue < OVERDUE {
        let (why, advice) = disruption(view);
        return Finding::note(Code::Terminating, format!("the Pod is being deleted{why}"), advice);
    }
    let finalizers: Vec<&str> =
        list(&metadata["finalizers"]).iter().filter_map(|finalizer| finalizer.as_str()).collect();
    let running: Vec<&str> = view
        .containers
        .iter()
        .filter(|container| container.is_running())
        .map(|container| container.name)
        .collect();
    // Only a whole number of the largest unit, so that equal Pods have equal texts.
    let since = if overdue < 120 {
        "over its grace period".to_owned()
    } else {
        format!("{} over its grace period", age(overdue))
    };
    let failed = view
        .last_event(&["FailedKillPod"])
        .and_then(|event| Some((event, wording::find(wording::deletion::TABLE, &event.message)?)));
    let (why, advice, is_certain) = match failed {
        _ if !finalizers.is_empty() => (
            format!("the finalizers {} remain", finalizers.join(", ")),
            "the controller that set the finalizer must remove it; find out why it does not",
            true,
        ),
        _ if !super::node::is_ready(view).unwrap_or(true) => (
            "its node is not ready, so kubelet does not report that the containers stopped".to_owned(),
            "repair the node, or delete its Node object",
            true,
        ),
        Some((event, known)) => (event.whole(), known.advice, known.certain),
        None if !running.is_empty() => (
            format!("the containers {} still run", running.join(", ")),
            "look at the log of kubelet: the runtime does not stop them",
            true,
        ),
        None => (
            "kubelet has not removed it".to_owned(),
            "look at the events, and at the log of kubelet: a volume may not be unmounted",
            true,
        ),
    };
    let text = format!("the Pod is stuck in deletion, {since}: {why}");
    Finding::broken(Code::Terminating, text, advice).certain_if(is_certain)
}

/// Returns why Kubernetes deletes the Pod on its own, and what to do about it.
fn disruption(view: &View<'_>) -> (String, &'static str) {
    let condition = view.condition("DisruptionTarget");
    let Some(reason) = condition["reason"].as_str().filter(|_| condition["status"] == "True") else {
        return (String::new(), "");
    };
    let message = condition["message"].as_str().unwrap_or_default();
    let advice = match reason {
        "PreemptionByScheduler" => {
            "a Pod of higher priority needs its place: raise the priority of the Pod, or add nodes"
        }
        "DeletionByTaintManager" => "its node has a taint that it does not tolerate: look at the node",
        "EvictionByEvictionAPI" => {
            "its node is drained, or a tool evicts it; its controller creates another Pod"
        }
        "TerminationByKubelet" => "its node is short of resources or shuts down: look at the node",
        _ => "its controller creates another Pod",
    };
    (format!(": {reason}: {message}"), advice)
}
