//! The Pod is not ready, and no cause was found.

use crate::container::{Container, Role};
use crate::finding::{Code, Finding};
use crate::situation::{Fetched, ProbeResult};
use crate::view::View;

pub(super) fn find(view: &View<'_>) -> Vec<Finding> {
    let is_done = |container: &Container<'_>| container.status["state"]["terminated"]["exitCode"] == 0;
    // A Pod is not ready if a container of it has completed, which is normal in a Job.
    let is_completing = view.containers.iter().any(is_done)
        && view
            .containers
            .iter()
            .all(|container| container.role == Role::Init || container.is_ready() || is_done(container));
    if view.is_ready() || view.is_terminating() || view.phase() == "Succeeded" || is_completing {
        return Vec::new();
    }
    let ready = view.condition("Ready");
    let message = ready["message"].as_str().filter(|message| !message.is_empty());
    let message = message.map(|message| format!(": {message}")).unwrap_or_default();
    let waiting = view.containers.iter().find_map(|container| {
        let (reason, _) = container.waiting().filter(|(reason, _)| !reason.is_empty())?;
        Some(format!("; the container {} waits: {reason}", container.name))
    });
    let text = format!("the Pod is not ready{message}{}", waiting.unwrap_or_default());
    let situation = view.situation;
    let is_refused = situation.events == Fetched::Forbidden
        || situation.answers.iter().any(|answer| answer.result == ProbeResult::Forbidden);
    let advice = if is_refused {
        "add the rules that are named below to your role, and try again"
    } else {
        "look at kubectl describe pod, and at the log of kubelet"
    };
    vec![Finding::unknown(Code::Unknown, text, advice)]
}
