//! The Pod has no node.

use crate::finding::{Code, Finding};
use crate::view::View;

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
        Finding::broken(Code::Scheduling, format!("no node takes the Pod: {message}"), advice(message))
    };
    vec![finding]
}

fn advice(message: &str) -> &'static str {
    let has = |text: &str| message.contains(text);
    match () {
        () if has("Insufficient") => {
            "lower the requests of the Pod, which include those of the sidecar, or add nodes"
        }
        () if has("volume node affinity") => {
            "its volume exists in another zone or on another node, which has no room: look at the PersistentVolume"
        }
        () if has("Too many pods") => "the nodes run as many Pods as they may: add nodes",
        () if has("node affinity") || has("node selector") => {
            "compare nodeSelector and affinity of the Pod with the labels of the nodes"
        }
        () if has("anti-affinity") || has("pod affinity") || has("topology spread") => {
            "compare podAffinity, podAntiAffinity and topologySpreadConstraints of the Pod with the Pods on the nodes, or add nodes"
        }
        () if has("no nodes available") => "the cluster has no node: add one",
        () if has("were unschedulable") => "the nodes are cordoned: kubectl uncordon, or add nodes",
        () if has("taint {node.kubernetes.io/") || has("taint(s) {node.kubernetes.io/") => {
            "the taint shows the state of the nodes: kubectl describe node, and repair them or add others"
        }
        () if has("taint") => "add a toleration to the Pod, or remove the taint from a node",
        () if has("persistentvolumeclaim") || has("PersistentVolumeClaim") || has("volume") => {
            "look at the claim: kubectl describe pvc"
        }
        () if has("host ports") || has("free ports") => {
            "another Pod has the hostPort on each node; choose another one"
        }
        () => "the message is that of the scheduler",
    }
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
