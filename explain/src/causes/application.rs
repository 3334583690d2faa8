//! A container of the application exits.

pub(super) mod crash;

use crate::causes::hook;
use crate::clock::Timestamp;
use crate::container::{Container, Terminated};
use crate::finding::{Code, Finding};
use crate::probes::meaning::Fault;
use crate::view::View;
use injector::ProbeKind;

/// How long a container that was restarted repeatedly still counts as crashing, in seconds: kubelet
/// resets its back-off after this time.
const RECENT: u64 = 600;
/// How long the runtime may take to report the end of a killed container, in seconds.
const STOP: u64 = 30;

pub(super) fn find(view: &View<'_>) -> Vec<Finding> {
    let applications = view.containers.iter().filter(|container| container.is_application());
    applications.filter_map(|container| of(view, container)).collect()
}

fn of(view: &View<'_>, container: &Container<'_>) -> Option<Finding> {
    if view.has_failed_as_a_whole() {
        return None;
    }
    let terminated = container.terminated()?;
    let is_finished = container.status["state"]["terminated"].is_object() && terminated.exit_code() == 0;
    if is_finished && view.phase() == "Running" {
        return Some(
            Finding::note(Code::Completed, "the container has completed with 0", "").about(container.name),
        );
    }
    if !container.is_crashing() && !is_restarting(view, container, terminated) {
        return None;
    }
    // A container that cannot be started is another cause.
    if terminated.is_start_error() {
        return None;
    }
    let finding = if terminated.is_out_of_memory() {
        let limit = container.value["resources"]["limits"]["memory"]
            .as_str()
            .map(|limit| format!(" of {limit}"))
            .unwrap_or_default();
        Finding::broken(
            Code::OutOfMemory,
            format!("the container was killed because it exceeded its memory limit{limit}"),
            "raise the limit, or find out what needs the memory",
        )
    } else if let Some(kind) = killed_by(view, container, terminated) {
        by_probe(view, container, terminated, kind)
    } else if let Some(message) = hook::failed_post_start(view, container, terminated) {
        hook::post_start(view, container, message)
    } else {
        let line = crash::error_line(view, container);
        let message = match (terminated.message(), &line) {
            ("", None) => String::new(),
            (message, Some(line)) if message.is_empty() || line.is_of_message() => line.clause(),
            (message, _) => format!(": {message}"),
        };
        let (text, advice) = if terminated.exit_code() == 0 {
            (
                "the application exits with 0, and kubelet restarts it",
                "a container must keep running, or belong to a Job",
            )
        } else {
            ("the application crashes", crash::log_advice(container))
        };
        let how = if terminated.exit_code() == 0 {
            String::new()
        } else {
            format!(" with {}", terminated.describe())
        };
        let (advice, is_certain) = crash::advice(terminated, line.as_ref()).unwrap_or((advice, true));
        Finding::broken(Code::Application, format!("{text}{how}{message}"), advice).certain_if(is_certain)
    };
    Some(finding.about(container.name))
}

/// Returns true if the container runs now, but will hardly continue to: kubelet has restarted it
/// more than once, the last time recently.
fn is_restarting(view: &View<'_>, container: &Container<'_>, terminated: Terminated<'_>) -> bool {
    let recent = view.seconds_since(terminated.finished_at()).is_some_and(|seconds| seconds < RECENT);
    container.restarts() > 1 && recent
}

/// Returns the probe after whose failures kubelet killed the container, if it did.
pub(super) fn killed_by(
    view: &View<'_>,
    container: &Container<'_>,
    terminated: Terminated<'_>,
) -> Option<ProbeKind> {
    let killed = view
        .events
        .iter()
        .rev()
        .find(|event| event.reason == "Killing" && event.container == container.name)?;
    let seconds = Timestamp::parse(&killed.last)?.seconds_until(Timestamp::parse(terminated.finished_at())?);
    if seconds > grace(view) + STOP {
        return None;
    }
    let kinds =
        [(ProbeKind::Liveness, "failed liveness probe"), (ProbeKind::Startup, "failed startup probe")];
    kinds.into_iter().find(|(_, words)| killed.message.contains(words)).map(|(kind, _)| kind)
}

/// The probe explains more than the exit code, which is that of kubelet's signal.
fn by_probe(
    view: &View<'_>,
    container: &Container<'_>,
    terminated: Terminated<'_>,
    kind: ProbeKind,
) -> Finding {
    let failure = super::probe::last_counted_failure(view, container.name, kind);
    let why = failure.as_ref().map(|failure| format!(": {}", failure.text)).unwrap_or_default();
    let is_certain = failure.as_ref().is_some_and(|failure| failure.certain);
    let fault = failure.as_ref().map_or(Fault::Application, |failure| failure.fault);
    let mut advice =
        failure.map_or_else(|| "look at the events of the probe".to_owned(), |failure| failure.advice);
    let may_start_slowly = fault == Fault::Application && kind == ProbeKind::Liveness;
    if may_start_slowly && is_killed_at_start(view, container, terminated) {
        advice = format!(
            "the probe fails from the start of the container: if the application starts slowly, declare a startupProbe; else {advice}"
        );
    }
    if kind == ProbeKind::Startup && fault == Fault::Application {
        advice = format!(
            "if the application starts slowly, raise failureThreshold of its startupProbe; else {advice}"
        );
    }
    let code = if fault == Fault::Network { Code::Network } else { Code::Probe };
    let text = format!("kubelet kills the container because its {} probe fails{why}", kind.name());
    Finding::broken(code, text, advice).certain_if(is_certain)
}

/// Returns true if the liveness probe cannot have succeeded in the last run: without a startup probe,
/// the run ended at the first opportunity.
fn is_killed_at_start(view: &View<'_>, container: &Container<'_>, terminated: Terminated<'_>) -> bool {
    let Some(probe) = container.probe(ProbeKind::Liveness) else { return false };
    let first = probe.initial_delay() + probe.tolerance() + probe.timeout();
    let lived = Timestamp::parse(terminated.started_at())
        .and_then(|started| Some(started.seconds_until(Timestamp::parse(terminated.finished_at())?)));
    let grace = probe.value["terminationGracePeriodSeconds"].as_u64().unwrap_or_else(|| grace(view));
    container.probe(ProbeKind::Startup).is_none()
        && container.restarts() > 1
        && lived.is_some_and(|lived| lived > 0 && lived <= first + grace)
}

fn grace(view: &View<'_>) -> u64 {
    view.pod["spec"]["terminationGracePeriodSeconds"].as_u64().unwrap_or(30)
}
