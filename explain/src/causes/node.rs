//! The node of the Pod does not work.

use serde_json::Value;

use crate::container::list;
use crate::finding::{Code, Finding};
use crate::situation::Fetched;
use crate::view::View;

const UNKNOWN: &str = "look at the node: kubectl describe node, the log of kubelet, the network plugin";
/// Parts of the message of the condition, which lists all that is wrong, as
/// pkg/kubelet/nodestatus/setters.go and pkg/kubelet/runtime.go write it.
const MESSAGES: [(&str, &str); 4] = [
    (
        "container runtime is down",
        "the container runtime of the node does not answer: look at its log, and restart it",
    ),
    (
        "PLEG is not healthy: ",
        "the container runtime of the node answers too slowly: look at its log, and at the load and the disk of the node",
    ),
    ("NetworkReady=false", "the network plugin is not ready on the node: look at the Pods of its DaemonSet"),
    (
        "Kubelet stopped posting node status.",
        "kubelet does not reach the API server: does the node run, and kubelet on it? Look at its log",
    ),
];

fn of_message(message: &str) -> &'static str {
    MESSAGES.iter().find(|(part, _)| message.contains(part)).map_or(UNKNOWN, |(_, advice)| advice)
}

/// Returns whether the node is ready; `None` if that is not known.
pub(super) fn is_ready(view: &View<'_>) -> Option<bool> {
    let node = view.situation.node.found()?;
    let ready = condition(node, "Ready")?;
    Some(ready["status"] == "True")
}

fn condition<'a>(node: &'a Value, kind: &str) -> Option<&'a Value> {
    list(&node["status"]["conditions"]).iter().find(|condition| condition["type"] == kind)
}

pub(super) fn find(view: &View<'_>) -> Vec<Finding> {
    let is_gone = view.situation.node == Fetched::NotFound;
    // The garbage collector fails the Pods of a node that no longer exists, and gives no reason.
    let is_lost = is_gone && !view.has_failed_as_a_whole() && view.phase() == "Failed";
    if matches!(view.phase(), "Succeeded" | "Failed") && !is_lost {
        return Vec::new();
    }
    let name = view.pod["spec"]["nodeName"].as_str().unwrap_or_default();
    if is_gone {
        let text = format!("the node {name} of the Pod no longer exists");
        return vec![Finding::broken(
            Code::Node,
            text,
            "the Pod is deleted by the garbage collector; its controller creates another",
        )];
    }
    let Some(ready) = view.situation.node.found().and_then(|node| condition(node, "Ready")) else {
        return Vec::new();
    };
    match ready["status"].as_str() {
        Some("True") => pressure(view, name).into_iter().collect(),
        status => {
            let message = ready["message"].as_str().filter(|message| !message.is_empty());
            let message = message.map(|message| format!(": {message}")).unwrap_or_default();
            let text = match status {
                Some("Unknown") => format!("the node {name} does not report its state{message}"),
                _ => format!("the node {name} is not ready{message}"),
            };
            let advice = ready["message"].as_str().map_or(UNKNOWN, of_message);
            vec![Finding::broken(Code::Node, text, advice)]
        }
    }
}

/// A node under pressure evicts Pods; running ones work for now.
fn pressure(view: &View<'_>, name: &str) -> Option<Finding> {
    let node = view.situation.node.found()?;
    let kinds = ["MemoryPressure", "DiskPressure", "PIDPressure"];
    let kind = kinds
        .into_iter()
        .find(|kind| condition(node, kind).is_some_and(|found| found["status"] == "True"))?;
    Some(Finding::note(
        Code::Node,
        format!("the node {name} has {kind}, and may evict the Pod"),
        "free resources of the node",
    ))
}
