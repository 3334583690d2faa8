//! An image cannot be pulled.

use crate::container::Container;
use crate::finding::{Code, Finding};
use crate::view::View;

const REASONS: [&str; 6] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "InvalidImageName",
    "ImageInspectError",
    "RegistryUnavailable",
];

pub(super) fn find(view: &View<'_>) -> Vec<Finding> {
    view.containers.iter().filter_map(|container| of(view, container)).collect()
}

fn of(view: &View<'_>, container: &Container<'_>) -> Option<Finding> {
    let (reason, waiting) = container.waiting().filter(|(reason, _)| REASONS.contains(reason))?;
    let image = container.spec["image"].as_str().unwrap_or_default();
    // While kubelet waits for the next try, only the event has the message of the registry.
    let pulls = view
        .events
        .iter()
        .rev()
        .filter(|event| event.reason == "Failed" && event.container == container.name);
    let pulled = pulls.map(|event| event.line()).find(|line| line.contains("pull") && line.contains(": "));
    let message = match reason {
        "ImagePullBackOff" => pulled.unwrap_or(waiting),
        _ => waiting,
    };
    let is_sidecar = view.sidecar.as_ref().is_some_and(|sidecar| sidecar.container == container.name);
    let advice = match () {
        () if reason == "InvalidImageName" => "correct the image of the container",
        () if reason == "ErrImageNeverPull" => {
            "imagePullPolicy is Never: load the image onto the node, or change the policy"
        }
        () if is_sidecar => {
            "set --image of the webhook, or imagePullSecrets in its template, to what the nodes can pull, and create the Pod again"
        }
        () if ["not found", "manifest unknown"].iter().any(|text| message.contains(text)) => {
            "check the name and the tag of the image"
        }
        () if ["unauthorized", "denied", "401", "403"].iter().any(|text| message.contains(text)) => {
            "check imagePullSecrets of the Pod or of its service account"
        }
        () => "can the node reach the registry? Check the name of the image and the registry",
    };
    let text = format!(
        "the image {image} cannot be pulled: {reason}: {}",
        message.lines().next().unwrap_or_default()
    );
    Some(Finding::broken(Code::Image, text, advice).about(container.name))
}
