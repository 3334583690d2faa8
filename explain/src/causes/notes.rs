//! What a Pod that works may still suffer from, and what could not be read.

use crate::container::Role;
use crate::destination::Destination;
use crate::finding::{Code, Finding};
use crate::probes::ProbeRow;
use crate::situation::ProbeResult;
use crate::view::View;
use injector::ProbeKind;

pub(super) fn find(view: &View<'_>) -> Vec<Finding> {
    let mut notes = Vec::new();
    notes.extend(view.probes.iter().filter(|row| row.is_slow()).map(slow));
    notes.extend(view.probes.iter().filter_map(|row| super::probe::flapping(view, row)));
    notes.extend(view.probes.iter().filter_map(super::probe::without_effect));
    notes.extend(view.probes.iter().filter_map(|row| not_rewritten(view, row)));
    notes.extend(view.injection.warnings.iter().map(|warning| {
        Finding::note(
            Code::Warning,
            warning.strip_prefix("app-health: ").unwrap_or(warning),
            "docs/injection.md lists each warning and what to do",
        )
    }));
    notes.extend(envoy_exits(view));
    notes.extend(restarts(view));
    notes.extend(rejected_configuration(view));
    notes.extend(super::control_plane::find(view));
    notes.extend(no_readiness_probe(view));
    notes.extend(not_answering(view));
    notes
}

fn slow(row: &ProbeRow) -> Finding {
    let text = format!(
        "the {} probe takes more than half of its timeout of {} s",
        row.probe.name(),
        row.timeout_milliseconds / 1000
    );
    Finding::note(
        Code::Slow,
        text,
        "raise timeoutSeconds before it fails, or find out what the application waits for",
    )
    .about(&row.container)
}

fn not_rewritten(view: &View<'_>, row: &ProbeRow) -> Option<Finding> {
    if !view.injection.injected {
        return None;
    }
    // A warning of the injector says why.
    let field = format!("{}.{}", row.container, row.probe.field());
    let is_explained = view.injection.warnings.iter().any(|warning| warning.contains(&field));
    if is_explained {
        return None;
    }
    let (text, advice) = match row.destination {
        Destination::Application => (
            "was not rewritten, so kubelet sends it to the application's port".to_owned(),
            "with strict mutual TLS it fails; does an annotation disable rewriting?",
        ),
        Destination::Unknown => (
            format!("has {}: the sidecar cannot send it, and kubelet performs it itself", row.sent_to),
            "use a version of app-health that knows the handler, or declare another one",
        ),
        Destination::Sidecar | Destination::Command | Destination::OtherHost => return None,
    };
    let text = format!("the {} probe {text}", row.probe.name());
    Some(Finding::note(Code::NotRewritten, text, advice).about(&row.container))
}

fn envoy_exits(view: &View<'_>) -> Option<Finding> {
    let sidecar = view.sidecar.as_ref().filter(|sidecar| !sidecar.envoy_exits.is_empty())?;
    let exits: Vec<String> =
        sidecar.envoy_exits.iter().map(|(cause, count)| format!("{count} ({cause})")).collect();
    let last =
        sidecar.last_envoy_exit.as_ref().map(|exit| format!("; the last time {exit}")).unwrap_or_default();
    let advice = if sidecar.envoy_exits.contains_key("hung") {
        "Envoy hung, and the agent replaced it: give the sidecar more CPU, and read its log"
    } else {
        "read the log of the sidecar: it has each exit with its cause"
    };
    Some(
        Finding::note(
            Code::EnvoyRestarts,
            format!("Envoy has exited inside the sidecar: {}{last}", exits.join(", ")),
            advice,
        )
        .about(&sidecar.container),
    )
}

fn restarts(view: &View<'_>) -> Vec<Finding> {
    let restarted = view.containers.iter().filter(|container| {
        container.restarts() > 0 && container.role != Role::Init && !container.is_crashing()
    });
    let note = |container: &crate::container::Container<'_>| {
        let terminated = container.terminated()?;
        let how = match (terminated.is_out_of_memory(), terminated.message()) {
            (true, _) => "out of memory".to_owned(),
            (false, "") => terminated.describe(),
            (false, message) => format!("{}: {message}", terminated.describe()),
        };
        let number = container.restarts();
        let times = if number == 1 { "once".to_owned() } else { format!("{number} times") };
        Some(
            Finding::note(
                Code::Restarts,
                format!("the container was restarted {times}, the last time after {how}"),
                if terminated.is_out_of_memory() {
                    "raise its memory limit, or find out what needs the memory"
                } else {
                    "look at its log with --previous"
                },
            )
            .about(container.name),
        )
    };
    restarted.filter_map(note).collect()
}

fn rejected_configuration(view: &View<'_>) -> Option<Finding> {
    let metrics = view.situation.metrics.found()?;
    let mut rejected =
        crate::metrics::samples(metrics).filter(|sample| sample.name == "app_health_config_rejected_total");
    rejected.any(|sample| sample.value > 0).then(|| {
        Finding::note(
            Code::Warning,
            "the filter has rejected a configuration, and uses the previous one",
            "the log of the sidecar names the key, the value and the reason",
        )
    })
}

fn no_readiness_probe(view: &View<'_>) -> Option<Finding> {
    let is_served = view.injection.injected && matches!(view.phase(), "Running");
    (is_served && !super::probe::has_probe(view, ProbeKind::Readiness)).then(|| {
        Finding::note(Code::Probe, "no container of the application declares a readiness probe, so the Pod counts as ready while they run", "declare one")
    })
}

/// The Pod may work although the API server cannot reach it.
fn not_answering(view: &View<'_>) -> Option<Finding> {
    let refused = view.situation.answers.iter().find_map(|answer| match &answer.result {
        ProbeResult::Unreachable(reason) if !reason.contains("connection refused") => {
            Some(format!("the API server cannot reach the Pod: {reason}"))
        }
        ProbeResult::Failed(reason) => Some(format!("a probe could not be requested: {reason}")),
        _ => None,
    });
    let advice = "what is shown comes from kubelet's events and the log; does a network policy or APP_HEALTH_ALLOW_FROM exclude the API server?";
    refused.map(|text| Finding::note(Code::NotAnswering, text, advice))
}
