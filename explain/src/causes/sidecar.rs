//! The sidecar runs, but is not ready.

use crate::causes::network;
use crate::container::{Role, list};
use crate::finding::{Code, Finding};
use crate::view::View;

pub(super) fn find(view: &View<'_>) -> Vec<Finding> {
    if let Some(finding) = keeps_running(view).or_else(|| blocks_the_start(view)) {
        return vec![finding];
    }
    let Some(sidecar) = view.sidecar.as_ref().filter(|sidecar| !sidecar.ready && !view.is_terminating())
    else {
        return Vec::new();
    };
    let Some(container) = view.sidecar_container().filter(|container| container.is_running()) else {
        return Vec::new();
    };
    let about =
        |text: String, advice: &str| Finding::broken(Code::Sidecar, text, advice).about(&sidecar.container);
    if let Some(pending) = sidecar.pending.first() {
        let others: Vec<&str> = sidecar.pending.iter().map(|pending| pending.reason.as_str()).collect();
        return vec![about(
            format!("the sidecar is not ready: {}", others.join(", ")),
            advice(&pending.condition, &pending.reason),
        )];
    }
    if network::is_blocked(view) {
        return Vec::new();
    }
    let exits = sidecar.last_exit.as_ref().filter(|_| container.restarts() > 0);
    let last = exits.map(|exit| format!("; it was restarted after {exit}")).unwrap_or_default();
    let text = format!("the sidecar is not ready, and its reasons could not be read{last}");
    vec![about(text, "read its log").certain_if(false)]
}

/// Returns what to do about a condition of docs/configuration.md.
fn advice(condition: &str, reason: &str) -> &'static str {
    match condition {
        "process" => "Envoy does not run: the log of the sidecar has its exit code and its last error",
        "admin" => "Envoy starts or hangs, or its admin interface is elsewhere than --admin",
        "live" if reason.contains("draining") => "Envoy is drained: did a preStop hook or a client drain it?",
        "live" => "Envoy waits for clusters: does the control plane answer? Read the log of the sidecar",
        "clusters" | "listeners" if reason.contains("rejected") => {
            "Envoy's log says why it rejected the configuration of the control plane"
        }
        "clusters" | "listeners" => {
            "the control plane has sent no configuration: does it run, and can the Pod reach it?"
        }
        "workers" => "Envoy's worker threads do not accept connections yet: give the sidecar more CPU",
        "data-path" if reason.contains("filter") => {
            "port 15020 has no filter: compare your Envoy configuration with the rendered bootstrap"
        }
        "data-path" => {
            "port 15020 does not accept, or something else answers there: which container uses the port?"
        }
        "drain" => {
            "the sidecar drains: after SIGTERM that is final; after `drain`, run `app-health-agent undrain` in it"
        }
        "shutdown" => "the agent exits; kubelet restarts it",
        _ => "read the log of the sidecar",
    }
}

/// A cluster that does not know native sidecars drops `restartPolicy: Always`, and waits for the end of
/// the sidecar as of any other init container.
fn blocks_the_start(view: &View<'_>) -> Option<Finding> {
    let sidecar = view.sidecar_container().filter(|sidecar| sidecar.is_running())?;
    let mut init = list(&view.pod["spec"]["initContainers"]).iter();
    let declared = init.find(|each| each["name"] == sidecar.name)?;
    (declared["restartPolicy"] != "Always").then(|| {
        Finding::broken(
            Code::Sidecar,
            "the sidecar is an ordinary init container, so the application waits for its end",
            "a native sidecar needs restartPolicy: Always and Kubernetes 1.29: inject again with the mode of a classic sidecar",
        )
        .about(sidecar.name)
    })
}

/// A classic sidecar, which is one of `containers`, does not end with the work of the Pod.
fn keeps_running(view: &View<'_>) -> Option<Finding> {
    let sidecar = view.sidecar_container().filter(|sidecar| sidecar.is_running())?;
    let ends = matches!(view.pod["spec"]["restartPolicy"].as_str(), Some("Never" | "OnFailure"));
    let applications = view.containers.iter().filter(|each| each.role == Role::Application);
    let mut applications = applications.peekable();
    applications.peek()?;
    let is_done = applications.all(|each| each.status["state"]["terminated"]["exitCode"] == 0);
    (sidecar.list == "containers" && ends && is_done && !view.is_terminating()).then(|| {
        Finding::broken(
            Code::Sidecar,
            "the work of the Pod is done, but the sidecar keeps running, so the Pod does not complete",
            "use a native sidecar, or let the application run app-health-agent quit at its end",
        )
        .about(sidecar.name)
    })
}
