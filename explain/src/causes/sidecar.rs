//! The sidecar runs, but is not ready.

use crate::finding::{Code, Finding};
use crate::view::View;

pub(super) fn find(view: &View<'_>) -> Vec<Finding> {
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
    let exits = sidecar.last_exit.as_ref().filter(|_| container.restarts() > 0);
    let last = exits.map(|exit| format!("; it was restarted after {exit}")).unwrap_or_default();
    vec![about(format!("the sidecar is not ready, and its reasons could not be read{last}"), "read its log")]
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
