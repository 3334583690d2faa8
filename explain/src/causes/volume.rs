//! A volume cannot be mounted.

use crate::finding::{Code, Finding};
use crate::view::View;

pub(super) fn find(view: &View<'_>) -> Vec<Finding> {
    let waits = view.containers.iter().any(|container| {
        container
            .waiting()
            .is_some_and(|(reason, _)| matches!(reason, "ContainerCreating" | "PodInitializing"))
    });
    let runs =
        view.containers.iter().any(|container| container.is_running() || container.terminated().is_some());
    if !waits || runs {
        return Vec::new();
    }
    let Some(event) = view.last_event(&["FailedMount", "FailedAttachVolume", "FailedMapVolume"]) else {
        return Vec::new();
    };
    let message = event.line();
    let has = |text: &str| message.contains(text);
    let advice = match () {
        () if has("configmap") => {
            "create the ConfigMap in the namespace of the Pod, or mark the volume as optional"
        }
        () if has("secret") => {
            "create the Secret in the namespace of the Pod, or mark the volume as optional"
        }
        () if has("Multi-Attach") => {
            "the volume is attached to another node: stop the Pod that uses it there"
        }
        () if has("hostPath") => "create the path on the node, or change the type of the volume",
        () => "look at the claim and the driver: kubectl describe pvc",
    };
    vec![Finding::broken(Code::Volume, format!("a volume cannot be mounted: {message}"), advice)]
}
