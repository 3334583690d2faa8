//! What cannot work: values that the API server rejects, and names that kubelet cannot resolve.

mod fields;
mod handlers;
mod ports;

use std::collections::HashMap;

use injector::warning::quote;
use injector::{Container, Handler, Probe, ProbeKind, pod};
use serde_json::{Value, json};

use crate::finding::{Findings, Place};
use crate::pod_view::PodView;
use crate::rule::{INIT, INVALID_PORT, INVALID_PROBE, NAME, NAMED_PORT};
use fields::{port_name_problem, port_problem};
use handlers::problems;

pub(super) fn check(pod: &PodView, findings: &mut Findings) {
    let mut names: HashMap<&str, usize> = HashMap::new();
    for container in &pod.containers {
        *names.entry(container.name).or_default() += 1;
    }
    for container in &pod.containers {
        check_name(container, names[container.name] == 1, findings);
        for (field, message) in ports::port_problems(container.value) {
            findings.add_at(&INVALID_PORT, Place::of(container), &field, message);
        }
        if pod::field(container.value, "lifecycle").is_some_and(|lifecycle| !lifecycle.is_object()) {
            let message = "lifecycle must be an object";
            findings.add_at(&INVALID_PROBE, Place::of(container), "lifecycle", message);
        }
        for probe in container.probes().chain(container.hooks()) {
            let place = Place::of_probe(container, probe);
            if container.is_ordinary_init() {
                let text = "Kubernetes allows it only with restartPolicy: Always";
                findings.add_at(&INIT, place, "", text);
                continue;
            }
            check_port_name(container, probe, findings);
            for (field, message) in problems(probe, pod.grace_period) {
                findings.add_at(&INVALID_PROBE, place, &field, message);
            }
        }
    }
    check_ephemeral(pod, findings);
}

/// Returns true if the API server rejects the probe or hook.
pub(super) fn is_rejected(probe: Probe) -> bool {
    matches!(probe.handler(), Some(Handler::Unknown(_))) || !problems(probe, u64::MAX).is_empty()
}

/// Returns true if the API server rejects the port of a probe.
pub(super) fn is_rejected_port(port: &Value) -> bool {
    port_problem("port", port).is_some()
}

/// Returns true if the API server rejects a port of a container.
pub(super) fn has_rejected_port(container: &Value) -> bool {
    !ports::port_problems(container).is_empty()
}

fn check_name(container: &Container, is_unique: bool, findings: &mut Findings) {
    let name = container.name;
    let is_valid = !name.is_empty()
        && name.len() <= 63
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-');
    let place = Place::of(container);
    if pod::field(container.value, "name").is_none() {
        findings.add_at(&NAME, place, "name", "name is missing");
    } else if !is_valid {
        let value = quote(&container.value["name"]);
        let text = format!("name = {value}: must be lower-case letters, digits and hyphens, at most 63");
        findings.add_at(&NAME, place, "name", text);
    } else if !is_unique {
        findings.add_at(&NAME, place, "name", format!("several containers are called {name}"));
    }
}

fn check_port_name(container: &Container, probe: Probe, findings: &mut Findings) {
    let Some(handler) = probe.handler() else { return };
    let Some(name) = handler.port_name().filter(|name| port_name_problem(name).is_none()) else { return };
    if container.named_port(name).is_none() {
        let declared: Vec<&str> =
            container.ports().iter().map(pod::name).filter(|name| !name.is_empty()).collect();
        let declared = match declared.as_slice() {
            [] => "it declares no port with a name".to_owned(),
            names => format!("it declares {}", names.join(", ")),
        };
        let message =
            format!("port {} is not a port of container {}; {declared}", quote(&json!(name)), container.name);
        findings.add_at(
            &NAMED_PORT,
            Place::of_probe(container, probe),
            &format!("{}.port", handler.name()),
            message,
        );
    }
}

/// Kubernetes allows neither probes nor hooks nor ports in an ephemeral container.
fn check_ephemeral(pod: &PodView, findings: &mut Findings) {
    const LIST: &str = "ephemeralContainers";
    for (index, container) in pod::list(&pod.pod["spec"], LIST).iter().enumerate() {
        for field in ProbeKind::PROBES.map(ProbeKind::field).into_iter().chain(["lifecycle", "ports"]) {
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
