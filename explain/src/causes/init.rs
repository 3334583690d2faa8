//! An init container fails, so the application does not start.

use crate::causes::application::crash;
use crate::container::{Container, Role};
use crate::finding::{Code, Finding};
use crate::view::View;

pub(super) fn find(view: &View<'_>) -> Vec<Finding> {
    let mut init = view.containers.iter().filter(|container| container.role == Role::Init);
    let Some(container) = init.find(|container| container.is_crashing() || is_retrying(container)) else {
        return waiting(view);
    };
    let Some(terminated) = container.terminated() else { return Vec::new() };
    let how = if terminated.is_out_of_memory() { "out of memory".to_owned() } else { terminated.describe() };
    let line = crash::error_line(view, container);
    let clause = line.as_ref().map(crash::OutputLine::clause).unwrap_or_default();
    let text = format!("the init container fails with {how}, so the application does not start{clause}");
    let starts_first = view.sidecar.is_some()
        && view.containers.iter().position(|each| each.role == Role::Proxy)
            > view.containers.iter().position(|each| each.name == container.name);
    let (advice, is_certain) = if terminated.is_out_of_memory() {
        ("raise its memory limit, or find out what needs the memory", true)
    } else if let Some(known) = crash::advice(terminated, line.as_ref()) {
        known
    } else if starts_first {
        ("look at its log with --previous; it runs before the sidecar, so it has no proxy", true)
    } else {
        (crash::log_advice(container), true)
    };
    vec![Finding::broken(Code::Init, text, advice).certain_if(is_certain).about(container.name)]
}

/// Returns true if the container runs again after its last run has failed.
fn is_retrying(container: &Container<'_>) -> bool {
    let failed = container.terminated().is_some_and(|terminated| terminated.exit_code() != 0);
    container.is_running() && container.restarts() > 1 && failed
}

/// An init container that runs for long.
fn waiting(view: &View<'_>) -> Vec<Finding> {
    let mut init = view.containers.iter().filter(|container| container.role == Role::Init);
    let running = init.find(|container| {
        let started = container.status["state"]["running"]["startedAt"].as_str();
        started.and_then(|stamp| view.seconds_since(stamp)).is_some_and(|seconds| seconds >= 60)
    });
    let finding = running.map(|container| {
        let text = "the init container has been running for over a minute, and the application waits for it";
        Finding::broken(Code::Init, text, "look at its log: what does it wait for?").about(container.name)
    });
    finding.into_iter().collect()
}
