//! The runtime cannot create the Pod's network and namespaces.

use crate::finding::{Code, Finding};
use crate::view::View;
use crate::wording::{self, sandbox};

pub(super) fn find(view: &View<'_>) -> Vec<Finding> {
    let has_address = view.pod["status"]["podIP"].is_string();
    let event = view.last_event(&[
        "FailedCreatePodSandBox",
        "FailedCreatePodContainer",
        "FailedPodSandBoxStatus",
        "NetworkNotReady",
    ]);
    let event = event.filter(|_| !has_address && view.phase() == "Pending");
    let finding = event.map(|event| {
        let known = wording::find(sandbox::TABLE, &event.message);
        let advice = known
            .map_or("look at the network plugin and the container runtime of the node", |known| known.advice);
        let text = format!("the sandbox of the Pod cannot be created: {}", event.whole());
        Finding::broken(Code::Sandbox, text, advice).certain_if(wording::is_certain(known))
    });
    finding.into_iter().collect()
}
