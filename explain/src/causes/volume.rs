//! A volume cannot be mounted.

use crate::event::Event;
use crate::finding::{Code, Finding};
use crate::view::View;
use crate::wording;

const REASONS: [&str; 3] = ["FailedMount", "FailedAttachVolume", "FailedMapVolume"];
/// kubelet's summary names the volumes and that it timed out, but not why.
const SUMMARY: &str = "Unable to attach or mount volumes";
const UNKNOWN: &str = "look at the claim and the driver: kubectl describe pvc";

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
    let Some(event) = last_failure(view) else { return Vec::new() };
    let known = wording::find(wording::volume::TABLE, &event.message);
    let advice = known.map_or(UNKNOWN, |known| known.advice);
    let text = format!("a volume cannot be mounted: {}", event.whole());
    vec![Finding::broken(Code::Volume, text, advice).certain_if(wording::is_certain(known))]
}

/// Returns the newest failure. kubelet mounts the volumes before it creates the sandbox, so a failure
/// before an event of the sandbox or of an image is over.
fn last_failure<'a>(view: &'a View<'_>) -> Option<&'a Event> {
    let is_later = |event: &&Event| {
        event.reason.contains("SandBox") || matches!(event.reason.as_str(), "Pulling" | "Pulled")
    };
    let failures = view.events.iter().rev().take_while(|event| !is_later(event));
    let mut failures = failures.filter(|event| REASONS.contains(&event.reason.as_str()));
    let newest = failures.clone().next()?;
    Some(failures.find(|event| !event.message.starts_with(SUMMARY)).unwrap_or(newest))
}
