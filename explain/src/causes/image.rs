//! An image cannot be pulled.

use crate::causes::windows;
use crate::container::Container;
use crate::event::Event;
use crate::finding::{Code, Finding};
use crate::view::View;
use crate::wording;

/// How long an image may be pulled before that is remarkable, in seconds.
const PULL: u64 = 60;
const INVALID: &str = "correct the image of the container: it must have the form of an image reference, in lower case and without https://";
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
    let containers = view.containers.iter().filter(|container| !windows::explains(view, container));
    containers.filter_map(|container| of(view, container)).collect()
}

fn of(view: &View<'_>, container: &Container<'_>) -> Option<Finding> {
    let (reason, waiting) = match container.waiting()? {
        (reason, message) if REASONS.contains(&reason) => (reason, message),
        ("ContainerCreating" | "PodInitializing", _) => return pulling(view, container),
        _ => return None,
    };
    let image = container.value["image"].as_str().unwrap_or_default();
    // While kubelet waits for the next try, only the event has the message of the registry.
    let pulls = view
        .events
        .iter()
        .rev()
        .filter(|event| event.reason == "Failed" && event.container == container.name);
    let pulled = pulls.map(Event::whole).find(|line| line.contains("pull") && line.contains(": "));
    let message = match reason {
        // Since Kubernetes 1.32 it has the message of the registry itself.
        "ImagePullBackOff" => {
            match waiting.strip_prefix("Back-off pulling image ").and_then(|rest| rest.split_once("\": ")) {
                Some((_, message)) => message.to_owned(),
                None => pulled.unwrap_or_else(|| waiting.to_owned()),
            }
        }
        _ => waiting.to_owned(),
    };
    let is_sidecar = view.sidecar.as_ref().is_some_and(|sidecar| sidecar.container == container.name);
    let line = wording::one_line(&message);
    let known = wording::find(wording::image::TABLE, &line).map(|known| known.advice);
    let missing_secrets = view
        .last_event(&["FailedToRetrieveImagePullSecret"])
        .filter(|_| known.is_none_or(|advice| advice.contains("imagePullSecrets")));
    let advice = match () {
        () if reason == "InvalidImageName" => Some(INVALID),
        () if reason == "ErrImageNeverPull" => {
            Some("imagePullPolicy is Never: load the image onto the node, or change the policy")
        }
        () if reason == "SignatureValidationFailed" => Some(
            "the runtime does not accept the signature of the image: sign it, or change the policy of the node",
        ),
        () if is_sidecar && known.is_none_or(|advice| wording::image::OF_NAME.contains(&advice)) => Some(
            "set --image of the webhook, or imagePullSecrets in its template, to what the nodes can pull, and create the Pod again",
        ),
        () if missing_secrets.is_some() => Some(
            "a Secret of imagePullSecrets does not exist in the namespace: create it, or correct its name",
        ),
        () => known,
    };
    let is_certain = advice.is_some() && (!is_sidecar || known.is_some());
    let advice = advice.unwrap_or(
        "can the node reach the registry? Check the name of the image and the registry, and read the log of the container runtime",
    );
    let text = format!("the image {image} cannot be pulled: {reason}: {line}");
    Some(Finding::broken(Code::Image, text, advice).certain_if(is_certain).about(container.name))
}

/// A large image may take minutes.
fn pulling(view: &View<'_>, container: &Container<'_>) -> Option<Finding> {
    let last = view.events.iter().rev().find(|event| event.container == container.name)?;
    let seconds = view.seconds_since(&last.last).filter(|_| last.reason == "Pulling")?;
    (seconds >= PULL).then(|| {
        let image = container.value["image"].as_str().unwrap_or_default();
        let text = format!("the image {image} has been pulled for over a minute");
        Finding::unknown(Code::Image, text, "wait; is the image large, or the registry slow?")
            .about(container.name)
    })
}
