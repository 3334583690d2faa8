//! kubelet or the runtime cannot create a container.

use crate::container::Container;
use crate::finding::{Code, Finding};
use crate::view::View;

/// What to do if the node cannot execute the file of the command.
pub(super) const EXEC_FORMAT: &str = "the image is made for another CPU architecture than that of the node, or its command is a script without #!: use an image for both, or a nodeSelector";
const REASONS: [&str; 6] = [
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "PreCreateHookError",
    "PreStartHookError",
    "PostStartHookError",
];

pub(super) fn find(view: &View<'_>) -> Vec<Finding> {
    view.containers.iter().filter_map(of).collect()
}

fn of(container: &Container<'_>) -> Option<Finding> {
    let (reason, message) = match container.waiting() {
        Some((reason, message)) if REASONS.contains(&reason) => (reason, message.to_owned()),
        // Between two tries kubelet shows the back-off, and the runtime's error in the last run.
        _ => {
            let terminated = container.terminated().filter(|_| container.is_crashing())?;
            let is_start =
                matches!(terminated.exit_code(), 126..=128) && terminated.message().contains("failed to");
            is_start.then(|| ("StartError", terminated.message().to_owned()))?
        }
    };
    let lower = message.to_lowercase();
    let has = |text: &str| lower.contains(text);
    let advice = match () {
        () if has("configmap") => "create the ConfigMap or the key, or mark the reference as optional",
        () if has("secret") => "create the Secret or the key, or mark the reference as optional",
        () if has("runasnonroot") => {
            "set runAsUser to a number other than 0, or use an image with another user"
        }
        () if has("exec format error") => EXEC_FORMAT,
        () if has("error mounting") || has("subpath") => {
            "compare volumeMounts, and subPath, with the files of the volume and of the image"
        }
        () if has("executable file not found") || has("no such file") => {
            "correct the command of the container"
        }
        () if has("permission denied") => {
            "the file of the command is not executable for the container's user: correct its mode in the image"
        }
        () if reason == "PostStartHookError" => "look at the postStart hook and at the log of the container",
        () => "the message is that of the container runtime",
    };
    let text =
        format!("the container cannot be created: {reason}: {}", message.lines().next().unwrap_or_default());
    Some(Finding::broken(Code::ContainerConfig, text, advice).about(container.name))
}
