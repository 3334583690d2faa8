//! What cannot work: values that the API server rejects, and names that kubelet cannot resolve.

mod fields;
mod handlers;
mod ports;

use injector::pod;
use injector::warning::quote;
use serde_json::Value;

use crate::finding::Findings;
use crate::pod_view::{Container, PodView, Role};
use crate::probe_view::{Handler, Hook, Probe};
use crate::rule::{INIT, INVALID_PORT, INVALID_PROBE, NAME, NAMED_PORT};
use fields::{port_name_problem, port_problem};
use handlers::{hook_problems, probe_problems};

pub(super) fn check(pod: &PodView, findings: &mut Findings) {
    for container in &pod.containers {
        check_name(container, pod, findings);
        for (field, message) in ports::port_problems(container.value) {
            findings.add_at(&INVALID_PORT, container.place(""), &field, message);
        }
        if pod::field(container.value, "lifecycle").is_some_and(|lifecycle| !lifecycle.is_object()) {
            let message = "lifecycle must be an object";
            findings.add_at(&INVALID_PROBE, container.place(""), "lifecycle", message);
        }
        let named = container.probes().map(|probe| (probe.name, probe.handler()));
        let named: Vec<_> = named.chain(container.hooks().map(|hook| (hook.name, hook.handler()))).collect();
        if container.role == Role::Init {
            for (name, _) in named {
                let text = "Kubernetes allows it only with restartPolicy: Always";
                findings.add_at(&INIT, container.place(name), "", text);
            }
            continue;
        }
        for (name, handler) in named {
            if let Some(handler) = handler {
                check_port_name(container, name, handler, findings);
            }
        }
        for probe in container.probes() {
            for (field, message) in probe_problems(probe) {
                findings.add_at(&INVALID_PROBE, container.place(probe.name), &field, message);
            }
        }
        for hook in container.hooks() {
            for (field, message) in hook_problems(hook, pod.grace_period) {
                findings.add_at(&INVALID_PROBE, container.place(hook.name), &field, message);
            }
        }
    }
    check_ephemeral(pod, findings);
}

/// Returns true if the API server rejects the probe or hook `name` of a container.
pub(super) fn is_rejected(container: &Value, name: &'static str) -> bool {
    let lifecycle = pod::field(container, "lifecycle").unwrap_or(&Value::Null);
    match name {
        "preStop" | "postStart" => pod::field(lifecycle, name)
            .is_some_and(|value| !hook_problems(Hook { name, value }, u64::MAX).is_empty()),
        _ => {
            pod::field(container, name).is_some_and(|value| !probe_problems(Probe { name, value }).is_empty())
        }
    }
}

/// Returns true if the API server rejects the port of a probe.
pub(super) fn is_rejected_port(port: &Value) -> bool {
    port_problem("port", port).is_some()
}

/// Returns true if the API server rejects a port of a container.
pub(super) fn has_rejected_port(container: &Value) -> bool {
    !ports::port_problems(container).is_empty()
}

fn check_name(container: &Container, pod: &PodView, findings: &mut Findings) {
    let name = container.name;
    let is_valid = !name.is_empty()
        && name.len() <= 63
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-');
    let place = container.place("");
    if pod::field(container.value, "name").is_none() {
        findings.add_at(&NAME, place, "name", "name is missing");
    } else if !is_valid {
        let value = quote(&container.value["name"]);
        let text = format!("name = {value}: must be lower-case letters, digits and hyphens, at most 63");
        findings.add_at(&NAME, place, "name", text);
    } else if pod.containers.iter().filter(|other| other.name == name).count() > 1 {
        findings.add_at(&NAME, place, "name", format!("several containers are called {name}"));
    }
}

fn check_port_name(container: &Container, name: &'static str, handler: Handler, findings: &mut Findings) {
    let Some(port @ Value::String(text)) = handler.port() else { return };
    if port_name_problem(text).is_some() || matches!(handler, Handler::Grpc(_)) {
        return;
    }
    if !container.ports().iter().any(|port| pod::name(port) == text) {
        let declared: Vec<&str> =
            container.ports().iter().map(pod::name).filter(|name| !name.is_empty()).collect();
        let declared = match declared.as_slice() {
            [] => "it declares no port with a name".to_owned(),
            names => format!("it declares {}", names.join(", ")),
        };
        let message =
            format!("port {} is not a port of container {}; {declared}", quote(port), container.name);
        findings.add_at(&NAMED_PORT, container.place(name), &format!("{}.port", handler.name()), message);
    }
}

/// Kubernetes allows neither probes nor hooks nor ports in an ephemeral container.
fn check_ephemeral(pod: &PodView, findings: &mut Findings) {
    const LIST: &str = "ephemeralContainers";
    for (index, container) in pod::list(&pod.pod["spec"], LIST).iter().enumerate() {
        for field in ["livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "ports"] {
            if pod::field(container, field).is_some() {
                let message = format!(
                    "container {}: an ephemeral container must not have {field}",
                    quote(&container["name"])
                );
                findings.add(&INVALID_PROBE, &format!("spec.{LIST}[{index}].{field}"), message);
            }
        }
    }
}
