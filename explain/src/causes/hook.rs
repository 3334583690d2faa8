//! A lifecycle hook fails or does not end.

use injector::ProbeKind;
use probe::reason::Reason;

use crate::advice;
use crate::clock::{Timestamp, age};
use crate::container::{Container, Role, Terminated};
use crate::finding::{Code, Finding};
use crate::probes::failures;
use crate::view::View;

/// How long a hook may run before that is remarkable, in seconds.
const LONG: u64 = 60;
/// What to do about the hook of a classic sidecar that holds the application.
const WAITS: &str =
    "the hook waits until the sidecar is ready: read the log of the sidecar for what it waits for";
const FORBIDDEN: &str = "the sidecar refuses kubelet's address: add the address of the log line to --allow-from (APP_HEALTH_ALLOW_FROM) of the sidecar";

pub(super) fn find(view: &View<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        view.containers.iter().filter_map(|container| failed_pre_stop(view, container)).collect();
    if findings.is_empty() {
        findings.extend(running_pre_stop(view));
    }
    findings.extend(view.containers.iter().find_map(|container| running_post_start(view, container)));
    findings
}

/// The finding about a container that kubelet kills because its postStart hook fails.
pub(super) fn post_start(view: &View<'_>, container: &Container<'_>, message: &str) -> Finding {
    let text = format!("kubelet kills the container because its postStart hook fails: {message}");
    let own = match container.role {
        Role::Proxy => WAITS,
        _ => "correct the hook: kubelet runs it when the container starts, at once with the application",
    };
    let (why, advice) = reason(view, container, ProbeKind::PostStart).unwrap_or((String::new(), own));
    Finding::broken(Code::Hook, format!("{text}{why}"), advice).about(container.name)
}

/// Returns the message of the postStart hook whose failure ended the last run.
pub(super) fn failed_post_start<'a>(
    view: &'a View<'_>,
    container: &Container<'_>,
    terminated: Terminated<'_>,
) -> Option<&'a str> {
    let mut events = view.events.iter().rev();
    let failed =
        events.find(|event| event.reason == "FailedPostStartHook" && event.container == container.name)?;
    let is_over =
        Timestamp::parse(&failed.last)?.seconds_until(Timestamp::parse(terminated.started_at())?) > 0;
    (!is_over).then(|| failed.line())
}

/// kubelet stops the container although its hook has failed, so what the hook should do is not done.
fn failed_pre_stop(view: &View<'_>, container: &Container<'_>) -> Option<Finding> {
    let mut events = view.events.iter().rev();
    let failed =
        events.find(|event| event.reason == "FailedPreStopHook" && event.container == container.name)?;
    let text = format!("the preStop hook of the container failed: {}", failed.line());
    let known = reason(view, container, ProbeKind::PreStop);
    let is_certain = known.is_some();
    let (why, advice) = known.unwrap_or((
        String::new(),
        "look at its command or its path, and at the log of the container; only the log of kubelet has the error",
    ));
    let text = format!("{text}{why}");
    let finding = if view.is_terminating() {
        Finding::broken(Code::Hook, text, advice)
    } else {
        Finding::note(Code::Hook, text, advice)
    };
    Some(finding.certain_if(is_certain).about(container.name))
}

/// Returns the reason in the log of the sidecar for a hook that it sends, and what to do about it.
fn reason(view: &View<'_>, container: &Container<'_>, hook: ProbeKind) -> Option<(String, &'static str)> {
    let label = hook.word();
    let log = view.situation.sidecar_log.found()?;
    let refused = format!("hook {}/{label}: forbidden to ", container.name);
    if let Some((_, rest)) = log.lines().rev().find_map(|line| line.split_once(refused.as_str())) {
        let client = rest.split([',', ' ']).next().unwrap_or_default();
        return Some((format!(" (forbidden to {client})"), FORBIDDEN));
    }
    let reason = failures::last_word(log, container.name, label).filter(|reason| !reason.is_success())?;
    let advice = if reason == Reason::Forbidden { FORBIDDEN } else { advice::sentence(reason) };
    Some((format!(" ({}: {})", reason.word(), reason.text()), advice))
}

/// kubelet sends no event when a hook begins, so it may also be the application that still runs.
fn running_pre_stop(view: &View<'_>) -> Option<Finding> {
    let metadata = &view.pod["metadata"];
    let left = view.seconds_until(metadata["deletionTimestamp"].as_str()?).filter(|left| *left > 0)?;
    let grace = metadata["deletionGracePeriodSeconds"].as_u64()?;
    // kubelet stops a native sidecar after the application.
    let running = || view.containers.iter().filter(|container| container.is_running());
    let mut containers = running().filter(|container| container.role != Role::Proxy).chain(running());
    let container = containers.find(|container| container.probe(ProbeKind::PreStop).is_some())?;
    // In steps, so that the text does not change all the time.
    let left = if left < 120 { left.div_ceil(10) * 10 } else { left };
    let text = format!(
        "the preStop hook of the container, or after it the application, still runs; kubelet kills it in {} at the latest, at the end of the grace period of {grace} s",
        age(left)
    );
    let advice =
        "wait, or look at what the hook waits for; kubectl delete with --grace-period ends it sooner";
    Some(Finding::note(Code::Hook, text, advice).about(container.name))
}

/// kubelet shows a container as waiting until its postStart hook has ended, and starts no further one.
fn running_post_start(view: &View<'_>, container: &Container<'_>) -> Option<Finding> {
    container.waiting().filter(|(reason, _)| matches!(*reason, "ContainerCreating" | "PodInitializing"))?;
    container.probe(ProbeKind::PostStart)?;
    let mut events = view.events.iter().rev();
    let last = events.find(|event| event.container == container.name)?;
    let seconds = view.seconds_since(&last.last).filter(|_| last.reason == "Started")?;
    (seconds >= LONG).then(|| {
        let text = "the postStart hook of the container has been running for over a minute, and kubelet starts no other container until it ends";
        let advice = match container.role {
            Role::Proxy => WAITS,
            _ => "look at what the hook waits for, and at the log of the container",
        };
        Finding::broken(Code::Hook, text, advice).about(container.name)
    })
}
