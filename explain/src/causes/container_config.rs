//! kubelet or the runtime cannot create a container.

use crate::causes::windows;
use crate::container::Container;
use crate::finding::{Code, Finding};
use crate::view::View;
use crate::wording;

const REASONS: [&str; 6] = [
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "PreCreateHookError",
    "PreStartHookError",
    "PostStartHookError",
];

pub(super) fn find(view: &View<'_>) -> Vec<Finding> {
    let containers = view.containers.iter().filter(|container| !windows::explains(view, container));
    containers.filter_map(of).collect()
}

fn of(container: &Container<'_>) -> Option<Finding> {
    let (reason, message) = match container.waiting() {
        Some((reason, message)) if REASONS.contains(&reason) => (reason, message.to_owned()),
        // Between two tries kubelet shows the back-off, and the runtime's error in the last run.
        _ => {
            let terminated = container.terminated().filter(|_| container.is_crashing())?;
            terminated.is_start_error().then(|| ("StartError", terminated.lines().join("\n")))?
        }
    };
    let line = wording::one_line(&message);
    let known = wording::find(wording::container::TABLE, &line);
    let advice = match known {
        Some(known) => known.advice,
        None if reason == "PostStartHookError" => {
            "look at the postStart hook and at the log of the container"
        }
        None => "the message is that of the container runtime, and is not known here",
    };
    let code = if reason == "PostStartHookError" { Code::Hook } else { Code::ContainerConfig };
    let is_certain = wording::is_certain(known) || reason == "PostStartHookError";
    let text = format!("the container cannot be created: {reason}: {line}");
    Some(Finding::broken(code, text, advice).certain_if(is_certain).about(container.name))
}
