//! An image cannot be pulled.

use crate::container::Container;
use crate::finding::{Code, Finding};
use crate::view::View;

/// How long an image may be pulled before that is remarkable, in seconds.
const PULL: u64 = 60;
const REASONS: [&str; 7] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "InvalidImageName",
    "ImageInspectError",
    "RegistryUnavailable",
    "SignatureValidationFailed",
];

pub(super) fn find(view: &View<'_>) -> Vec<Finding> {
    view.containers.iter().filter_map(|container| of(view, container)).collect()
}

fn of(view: &View<'_>, container: &Container<'_>) -> Option<Finding> {
    let (reason, waiting) = match container.waiting()? {
        (reason, message) if REASONS.contains(&reason) => (reason, message),
        ("ContainerCreating" | "PodInitializing", _) => return pulling(view, container),
        _ => return None,
    };
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
    let lower = message.to_lowercase();
    let has = |texts: &[&str]| texts.iter().any(|text| lower.contains(text));
    let advice = match () {
        () if reason == "InvalidImageName" => "correct the image of the container",
        () if reason == "ErrImageNeverPull" => {
            "imagePullPolicy is Never: load the image onto the node, or change the policy"
        }
        () if is_sidecar => {
            "set --image of the webhook, or imagePullSecrets in its template, to what the nodes can pull, and create the Pod again"
        }
        () if has(&["no match for platform", "no matching manifest"]) => {
            "the image does not exist for the CPU architecture of the node: build it for both, or use a nodeSelector"
        }
        () if has(&["toomanyrequests", "too many requests", "rate limit"]) => {
            "the registry limits anonymous pulls: add imagePullSecrets, or use a mirror"
        }
        () if has(&["x509", "certificate"]) => {
            "the node does not trust the certificate of the registry: add its CA to the container runtime"
        }
        () if has(&["no space left"]) => "the disk of the node is full: free space, or use a larger one",
        // A registry does not say whether a private repository exists.
        () if has(&["repository does not exist", "insufficient_scope"]) => {
            "check the name of the image; if its repository is private, imagePullSecrets of the Pod or of its service account"
        }
        () if has(&["unauthorized", "denied", "forbidden"]) => {
            "check imagePullSecrets of the Pod or of its service account"
        }
        () if has(&["not found", "manifest unknown"]) => "check the name and the tag of the image",
        () => "can the node reach the registry? Check the name of the image and the registry",
    };
    let text = format!(
        "the image {image} cannot be pulled: {reason}: {}",
        message.lines().next().unwrap_or_default()
    );
    Some(Finding::broken(Code::Image, text, advice).about(container.name))
}

/// A large image may take minutes.
fn pulling(view: &View<'_>, container: &Container<'_>) -> Option<Finding> {
    let last = view.events.iter().rev().find(|event| event.container == container.name)?;
    let seconds = view.seconds_since(&last.last).filter(|_| last.reason == "Pulling")?;
    (seconds >= PULL).then(|| {
        let image = container.spec["image"].as_str().unwrap_or_default();
        let text = format!("the image {image} has been pulled for over a minute");
        Finding::unknown(Code::Image, text, "wait; is the image large, or the registry slow?")
            .about(container.name)
    })
}
