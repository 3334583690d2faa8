//! The Pod has just been created, and nothing has failed yet.

use crate::finding::{Code, Finding};
use crate::view::View;

/// How long a Pod may take to start before that is remarkable, in seconds.
const START: u64 = 60;

pub(super) fn find(view: &View<'_>) -> Vec<Finding> {
    let waits = |reasons: &[&str]| {
        view.containers
            .iter()
            .find(|container| container.waiting().is_some_and(|(reason, _)| reasons.contains(&reason)))
    };
    let age = view.pod["metadata"]["creationTimestamp"].as_str().and_then(|stamp| view.seconds_since(stamp));
    let is_new = age.is_some_and(|age| age < START);
    if view.is_ready() || view.is_terminating() || view.phase() == "Succeeded" || !is_new {
        return Vec::new();
    }
    let Some(container) = waits(&["ContainerCreating", "PodInitializing"]) else { return Vec::new() };
    let text = "the Pod has been created within the last minute, and its containers are starting";
    vec![Finding::unknown(Code::Starting, text, "wait, or use --watch").about(container.name)]
}
