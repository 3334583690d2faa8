//! The sidecar's container exits.

use crate::causes::{application, hook};
use crate::container::Terminated;
use crate::finding::{Code, Finding};
use crate::view::View;
use injector::ProbeKind;

pub(super) fn find(view: &View<'_>) -> Vec<Finding> {
    let Some(container) =
        view.sidecar_container().filter(|container| container.is_crashing() && !view.has_failed_as_a_whole())
    else {
        return Vec::new();
    };
    let Some(terminated) = container.terminated() else { return Vec::new() };
    if let Some(message) = hook::failed_post_start(view, container, terminated) {
        return vec![hook::post_start(view, container, message)];
    }
    let message = match (terminated.message(), view.last_line(container.name)) {
        ("", None) => String::new(),
        ("", Some(line)) => format!(": {line}"),
        (message, _) => format!(": {message}"),
    };
    let text = format!("the sidecar exits with {}{message}", describe(terminated));
    let (advice, is_certain) = match application::killed_by(view, container, terminated) {
        Some(kind) => (of_kill(kind), true),
        // Without an event, the signal may come from kubelet or from the kernel.
        None => (advice(terminated), terminated.exit_code() != 137 || terminated.is_out_of_memory()),
    };
    vec![Finding::broken(Code::SidecarCrash, text, advice).certain_if(is_certain).about(container.name)]
}

fn describe(terminated: Terminated<'_>) -> String {
    if terminated.is_out_of_memory() {
        "exit code 137, out of memory".to_owned()
    } else {
        terminated.describe()
    }
}

/// Returns what to do if kubelet kills the sidecar because of a probe of its own.
fn of_kill(kind: ProbeKind) -> &'static str {
    match kind {
        ProbeKind::Startup => {
            "kubelet kills it because its startup probe fails: read its log with --previous for the conditions that are pending"
        }
        ProbeKind::Liveness | ProbeKind::Readiness | ProbeKind::PreStop | ProbeKind::PostStart => {
            "kubelet kills it because its liveness probe fails: the agent or Envoy hangs. Give the sidecar more CPU, and read its log with --previous"
        }
    }
}

/// Returns what to do about the exit codes of the agent, which docs/configuration.md lists.
fn advice(terminated: Terminated<'_>) -> &'static str {
    match terminated.exit_code() {
        _ if terminated.is_out_of_memory() => {
            "raise the memory limit of the sidecar in the template, or remove it"
        }
        64 | 78 => {
            "a setting of the sidecar is invalid: correct the template or the Pod's annotations, and create the Pod again"
        }
        70 => "Envoy has exited repeatedly: read the log of the sidecar with --previous",
        71 => "a port of the sidecar is in use, or a permission is missing: which container uses the port?",
        73 => "the state directory cannot be written: it needs a volume at /var/run/app-health",
        127 | 126 => "the image of the sidecar does not contain the agent: check --image of the webhook",
        137 => {
            "it was killed from outside: look at the events for failed probes, and at the memory of the node"
        }
        _ => "read the log of the sidecar with --previous",
    }
}
