//! Finds probes that fail now, or failed shortly before.

use crate::causes::network;
use crate::clock::Timestamp;
use crate::event::Event;
use crate::finding::{Code, Finding};
use crate::probes::meaning::{Meaning, ProbeContext};
use crate::probes::{ProbeRow, State, failures, is_copied};
use crate::view::View;
use injector::ProbeKind;

/// How long ago a failure of a ready container still counts, in seconds.
const RECENT: u64 = 600;
/// How long after the start of a container failures are usual, in seconds.
const START: u64 = 120;

pub(super) fn find(view: &View<'_>) -> Vec<Finding> {
    if view.is_terminating() {
        return Vec::new();
    }
    // Another cause has those whose packets are lost.
    let rows = || view.probes.iter().filter(|row| !network::explains(view, row));
    let mut findings: Vec<Finding> =
        rows().filter(|row| row.state == State::Failing).map(|row| failing(view, row)).collect();
    findings.extend(rows().filter(|row| row.state != State::Failing).filter_map(|row| recovered(view, row)));
    findings
}

fn failing(view: &View<'_>, row: &ProbeRow) -> Finding {
    let text = format!("the {} probe fails: {}", row.probe.name(), row.text);
    let container = view.containers.iter().find(|container| container.name == row.container);
    if let Some(container) = container
        && container.probe(row.probe).is_some_and(|probe| is_copied(container.name, probe))
    {
        let advice = "the probe goes to the path of another container: apply the original manifest instead of a copy of an injected Pod";
        return Finding::broken(Code::Probe, text, advice).about(&row.container);
    }
    if row.probe == ProbeKind::Startup {
        return startup(view, row).about(&row.container);
    }
    // kubelet has not reached the threshold yet, or the failure has just begun.
    Finding::broken(Code::Probe, text, row.advice.clone()).certain_if(row.certain).about(&row.container)
}

/// A startup probe may fail for a while; only then kubelet kills the container.
fn startup(view: &View<'_>, row: &ProbeRow) -> Finding {
    let container = view.containers.iter().find(|container| container.name == row.container);
    let probe = container.and_then(|container| container.probe(row.probe));
    let allowed = probe.map_or(0, |probe| probe.initial_delay() + probe.tolerance());
    let consequence = if row.is_discarded {
        "kubelet cannot perform it, so the container neither counts as started nor is killed".to_owned()
    } else {
        format!("kubelet kills the container {allowed} s after its start")
    };
    let text = format!("the startup probe has not succeeded yet, and {consequence}: {}", row.text);
    Finding::broken(Code::Startup, text, row.advice.clone()).certain_if(row.certain)
}

/// The probe passes now, but kubelet has not seen enough successes, or it fails from time to time.
fn recovered(view: &View<'_>, row: &ProbeRow) -> Option<Finding> {
    let container = view.containers.iter().find(|container| container.name == row.container)?;
    if row.probe != ProbeKind::Readiness
        || container.is_ready()
        || !container.is_running()
        || row.state != State::Passing
    {
        return None;
    }
    let (text, advice) = match last_failure(view, &row.container, row.probe) {
        Some(failure) => (format!("the readiness probe passes now, but kubelet counts the container as not ready; it last failed with: {}", failure.text), format!("wait for a period; if it stays so, {}", failure.advice)),
        None => ("the readiness probe passes now, and kubelet counts the container as not ready; it sends the next probe within its period".to_owned(), "wait for a period; if it stays so, look at the events".to_owned()),
    };
    Some(Finding::broken(Code::ProbeRecovered, text, advice).certain_if(false).about(&row.container))
}

/// Returns a note if the probe of a ready container passes now, but has failed recently, and not
/// because the container had just started.
pub(super) fn flapping(view: &View<'_>, row: &ProbeRow) -> Option<Finding> {
    let container = view.containers.iter().find(|container| container.name == row.container)?;
    let started = container.status["state"]["running"]["startedAt"].as_str()?;
    let failed = &failures::last_event(&row.container, row.probe, &view.events)?.last;
    let after_start = Timestamp::parse(started)?.seconds_until(Timestamp::parse(failed)?);
    let is_recent = view.seconds_since(failed)? < RECENT && after_start > START;
    if row.state != State::Passing || !container.is_ready() || !is_recent {
        return None;
    }
    let failure = last_failure(view, &row.container, row.probe)?;
    let text = format!(
        "the {} probe passes now, but has failed within the last ten minutes: {}",
        row.probe.name(),
        failure.text
    );
    let advice = "it fails from time to time: compare its timeout with the latency, and use --watch";
    Some(Finding::note(Code::ProbeRecovered, text, advice).about(&row.container))
}

/// Returns a note if kubelet cannot perform a liveness probe, so that it never restarts the
/// container.
pub(super) fn without_effect(row: &ProbeRow) -> Option<Finding> {
    let is_without_effect = row.probe == ProbeKind::Liveness && row.is_discarded;
    is_without_effect.then(|| {
        // The next attempt may succeed, unless the probe itself is wrong.
        let begin = if row.certain {
            "the liveness probe has no effect"
        } else {
            "kubelet could not perform the liveness probe, and ignores that"
        };
        Finding::note(Code::Probe, format!("{begin}: {}", row.text), row.advice.clone())
            .certain_if(row.certain)
            .about(&row.container)
    })
}

/// Returns what the newest event about a failure of this probe means.
pub(super) fn last_failure(view: &View<'_>, container: &str, kind: ProbeKind) -> Option<Meaning> {
    meaning(view, container, kind, failures::last_event(container, kind, &view.events)?)
}

/// Returns what the newest failure of this probe means that kubelet has counted.
pub(super) fn last_counted_failure(view: &View<'_>, container: &str, kind: ProbeKind) -> Option<Meaning> {
    meaning(view, container, kind, failures::last_counted(container, kind, &view.events)?)
}

fn meaning(view: &View<'_>, container: &str, kind: ProbeKind, event: &Event) -> Option<Meaning> {
    let row = view.probes.iter().find(|row| row.container == container && row.probe == kind)?;
    let container = view.containers.iter().find(|each| each.name == container)?;
    let (situation, pod, destination) = (view.situation, view.pod, row.destination);
    Some(ProbeContext { situation, pod, container, kind, destination }.of_event(event))
}

/// Returns true if a container of the application has this probe.
pub(super) fn has_probe(view: &View<'_>, kind: ProbeKind) -> bool {
    let mut applications = view.containers.iter().filter(|container| container.is_application());
    applications.any(|container| container.probe(kind).is_some())
}
