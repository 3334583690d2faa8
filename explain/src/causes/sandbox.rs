//! The runtime cannot create the Pod's network and namespaces.

use crate::finding::{Code, Finding};
use crate::view::View;

pub(super) fn find(view: &View<'_>) -> Vec<Finding> {
    let has_address = view.pod["status"]["podIP"].is_string();
    let event = view.last_event(&["FailedCreatePodSandBox", "FailedPodSandBoxStatus", "NetworkNotReady"]);
    let event = event.filter(|_| !has_address && view.phase() == "Pending");
    let text = event.map(|event| format!("the sandbox of the Pod cannot be created: {}", event.line()));
    text.map(|text| {
        Finding::broken(
            Code::Sandbox,
            text,
            "look at the network plugin and the container runtime of the node",
        )
    })
    .into_iter()
    .collect()
}
