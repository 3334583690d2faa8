//! The Pod ends or has ended.

use crate::clock::age;
use crate::container::list;
use crate::finding::{Code, Finding};
use crate::view::View;

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
            let advice = match reason {
                "Evicted" => {
                    "raise the requests of the Pod, or free resources of the node; its controller creates another Pod"
                }
                "DeadlineExceeded" => "raise activeDeadlineSeconds, or find out why the work takes longer",
                "Preempting" => {
                    "a critical Pod needed its place: raise the priority of the Pod, or add nodes; its controller creates another Pod"
                }
                "NodePorts" => "another Pod or process of the node has the hostPort; choose another one",
                "UnexpectedAdmissionError" => {
                    "kubelet could not give it a device or CPUs: look at the device plugin of the node"
                }
                reason if reason.starts_with("OutOf") => {
                    "kubelet has no room for it, though it was assigned to the node: is spec.nodeName set, or another scheduler at work? Delete the Pod"
                }
                "NodeLost" | "NodeShutdown" | "Terminated" | "NodeAffinity" => {
                    "look at the node; its controller creates another Pod"
                }
                _ => "the message is that of kubelet or of a controller",
            };
            vec![Finding::broken(Code::Failed, format!("the Pod has failed: {reason}: {message}"), advice)]
        }
        _ => Vec::new(),
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
    let (why, advice) = match () {
        () if !finalizers.is_empty() => (
            format!("the finalizers {} remain", finalizers.join(", ")),
            "the controller that set the finalizer must remove it; find out why it does not",
        ),
        () if !super::node::is_ready(view).unwrap_or(true) => (
            "its node is not ready, so kubelet does not report that the containers stopped".to_owned(),
            "repair the node, or delete its Node object",
        ),
        () if !running.is_empty() => (
            format!("the containers {} still run", running.join(", ")),
            "look at the log of kubelet: the runtime does not stop them",
        ),
        () => (
            "kubelet has not removed it".to_owned(),
            "look at the events, and at the log of kubelet: a volume may not be unmounted",
        ),
    };
    Finding::broken(Code::Terminating, format!("the Pod is stuck in deletion, {since}: {why}"), advice)
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
