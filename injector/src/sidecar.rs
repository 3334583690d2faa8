//! Adds the sidecar container to a Pod: its fields, its position, its lifecycle hooks, and the
//! other parts of the template.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::pod;
use crate::pod_overrides::{PROXY_CONFIG, PodOverrides};
use crate::settings::{STATUS_PORT, Settings, SidecarMode};
use crate::template::Template;
use crate::warning::{Code, Warning};
use crate::{PROBE_ADDRESS_ENV, STATUS_ANNOTATION};

mod hooks;
mod merge;

/// The annotation with the container that kubectl uses if none is given.
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

use hooks::Hooks;
use merge::merge;

/// Adds the sidecar and the rest of the template to a Pod that has no sidecar, or one with `image:
/// auto`. `job` is true if the Pod belongs to a Job.
pub(super) fn inject(
    pod: &mut Value,
    overrides: &PodOverrides,
    settings: &Settings,
    job: bool,
) -> Vec<Warning> {
    let template = &settings.template;
    let mut warnings = Vec::new();
    let declared = take_declared(pod, &settings.sidecar_name);
    let mut sidecar = merged(template, declared.as_ref());
    status_port(&mut sidecar, overrides.status_port);
    unique_port_names(&mut sidecar, &pod["spec"]);
    let mode = overrides.sidecar_mode;
    let mut hooks =
        Hooks { declared: declared.as_ref(), name: &settings.sidecar_name, warnings: &mut warnings };
    let held = match mode {
        SidecarMode::Native => {
            hooks.warn_if_declared("preStop", template.sidecar.pointer("/lifecycle/preStop").is_some());
            hooks.warn_if_declared("postStart", template.sidecar.pointer("/lifecycle/postStart").is_some());
            if overrides.hold_override == Some(false) {
                let text =
                    "holdApplicationUntilProxyStarts has no effect: a native sidecar always starts first";
                let warning = Warning::about_pod(Code::Hold, text);
                hooks.warnings.push(warning.at(pod::annotation_path(PROXY_CONFIG)));
            }
            true
        }
        SidecarMode::Classic => {
            let always = matches!(pod::text(&pod["spec"], "restartPolicy"), "" | "Always");
            if job || !always {
                let what = if job { "Job" } else { "Pod" };
                let text = format!(
                    "a classic sidecar keeps the {what} running: use native or app-health-agent quit"
                );
                hooks.warnings.push(Warning::about_pod(Code::Job, text));
            }
            hooks.pre_stop(&mut sidecar);
            overrides.hold && hooks.hold(&mut sidecar, always)
        }
    };
    insert(pod, sidecar, settings, mode, held);
    add_template_parts(pod, overrides, settings);
    if mode == SidecarMode::Classic && held {
        set_default_container(pod);
    }
    warnings
}

/// Returns the sidecar of the template with the values of the one that the Pod declares.
pub(super) fn merged(template: &Template, declared: Option<&Value>) -> Value {
    declared.map_or_else(|| template.sidecar.clone(), |declared| merge(&template.sidecar, declared, ""))
}

/// Removes the declared sidecar from the Pod and returns it without the fields that only the
/// template may set.
fn take_declared(pod: &mut Value, name: &str) -> Option<Value> {
    for key in pod::CONTAINER_LISTS {
        let Some(list) = pod["spec"].get_mut(key).and_then(Value::as_array_mut) else { continue };
        if let Some(index) = list.iter().position(|container| pod::name(container) == name) {
            let mut declared = list.remove(index);
            let fields = declared.as_object_mut()?;
            fields.retain(|key, _| !matches!(key.as_str(), "image" | "imagePullPolicy" | "restartPolicy"));
            return Some(declared);
        }
    }
    None
}

/// Sets the status port in the container ports, and in the agent's environment if it is not 15020.
fn status_port(sidecar: &mut Value, port: u16) {
    if let Some(env) = sidecar.get_mut("env").and_then(Value::as_array_mut) {
        env.retain(|entry| pod::name(entry) != PROBE_ADDRESS_ENV);
    }
    if port == STATUS_PORT {
        return;
    }
    for declared in sidecar.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if declared["containerPort"] == STATUS_PORT {
            declared["containerPort"] = port.into();
        }
    }
    if sidecar.get("env").is_none_or(|env| env.is_null() || env.is_array()) {
        let variable = json!({"name": PROBE_ADDRESS_ENV, "value": format!("[::]:{port}")});
        pod::list_mut(sidecar, "env").push(variable);
    }
}

/// Removes the name of a port if another port of the Pod has it. In a container, Kubernetes rejects
/// the second one. Of several containers, a Service whose `targetPort` is the name uses the first one,
/// which may be the sidecar.
fn unique_port_names(sidecar: &mut Value, spec: &Value) {
    let ports = pod::containers(spec).flat_map(|container| pod::list(container, "ports"));
    let mut names: BTreeSet<String> = ports.map(|port| pod::name(port).to_owned()).collect();
    let ports = sidecar.get_mut("ports").and_then(Value::as_array_mut);
    // The ports that the Pod declares for the sidecar follow those of the template.
    for port in ports.into_iter().flatten().rev() {
        if !names.insert(pod::name(port).to_owned())
            && let Some(fields) = port.as_object_mut()
        {
            fields.shift_remove("name");
        }
    }
}

/// Inserts the sidecar and the template's other containers at their positions.
fn insert(pod: &mut Value, mut sidecar: Value, settings: &Settings, mode: SidecarMode, held: bool) {
    let template = &settings.template;
    let spec = &mut pod["spec"];
    let mut first = template.init_containers.clone();
    if mode == SidecarMode::Native {
        set_restart_policy(&mut sidecar);
        first.push(sidecar.clone());
    }
    if !first.is_empty() {
        if spec.get("initContainers").is_none_or(Value::is_null) {
            before_containers(spec);
        }
        pod::list_mut(spec, "initContainers").splice(0..0, first);
    }
    let containers = pod::list_mut(spec, "containers");
    containers.extend(template.containers.iter().cloned());
    match (mode, held) {
        (SidecarMode::Native, _) => {}
        (SidecarMode::Classic, true) => containers.insert(0, sidecar),
        (SidecarMode::Classic, false) => containers.push(sidecar),
    }
}

/// Inserts `restartPolicy` right after the name, where readers expect it.
fn set_restart_policy(sidecar: &mut Value) {
    if let Some(fields) = sidecar.as_object_mut() {
        fields.shift_insert(1.min(fields.len()), "restartPolicy".to_owned(), "Always".into());
    }
}

/// Adds an empty list of init containers just before the containers.
fn before_containers(spec: &mut Value) {
    if let Some(fields) = spec.as_object_mut() {
        fields.shift_remove("initContainers");
        let index = fields.keys().position(|key| key == "containers").unwrap_or(0);
        fields.shift_insert(index, "initContainers".to_owned(), json!([]));
    }
}

/// Adds volumes, pull secrets, labels and annotations of the template, and the status annotation.
fn add_template_parts(pod: &mut Value, overrides: &PodOverrides, settings: &Settings) {
    let template = &settings.template;
    for (key, elements) in
        [("volumes", &template.volumes), ("imagePullSecrets", &template.image_pull_secrets)]
    {
        if !elements.is_empty() {
            let list = pod::list_mut(&mut pod["spec"], key);
            let new = elements
                .iter()
                .filter(|element| list.iter().all(|other| pod::name(other) != pod::name(element)));
            let new: Vec<Value> = new.cloned().collect();
            list.extend(new);
        }
    }
    for (key, fields) in [("labels", &template.labels), ("annotations", &template.annotations)] {
        if !fields.is_empty() {
            let there = pod::object_of_metadata(pod, key);
            for (name, value) in fields {
                if there.get(name).is_none_or(Value::is_null) {
                    there.insert(name.clone(), value.clone());
                }
            }
        }
    }
    pod::annotate(pod, STATUS_ANNOTATION, status(overrides, settings).to_string());
}

/// Names the container after the sidecar as the one that kubectl logs and kubectl exec use if none is
/// given; otherwise they would use the sidecar, which is the first.
fn set_default_container(pod: &mut Value) {
    let application = pod::list(&pod["spec"], "containers").get(1).map(pod::name);
    let Some(application) = application.filter(|name| !name.is_empty()).map(str::to_owned) else { return };
    if pod::annotation(pod, DEFAULT_CONTAINER).is_none() {
        pod::annotate(pod, DEFAULT_CONTAINER, application);
    }
}

/// Returns the value of the status annotation, which lists what was added, so that tools can remove
/// it again.
fn status(overrides: &PodOverrides, settings: &Settings) -> Value {
    let template = &settings.template;
    let names = |elements: &[Value]| elements.iter().map(pod::name).map(Value::from).collect::<Vec<_>>();
    let (mut containers, mut init) = (names(&template.containers), names(&template.init_containers));
    match overrides.sidecar_mode {
        SidecarMode::Native => init.push(settings.sidecar_name.as_str().into()),
        SidecarMode::Classic => containers.push(settings.sidecar_name.as_str().into()),
    }
    let mut added = Map::new();
    let lists = [("containers", containers), ("initContainers", init), ("volumes", names(&template.volumes))];
    for (key, names) in lists {
        if !names.is_empty() {
            added.insert(key.to_owned(), names.into());
        }
    }
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "mode": overrides.sidecar_mode.word(),
        "statusPort": overrides.status_port,
        "template": template.hash,
        "added": added,
    })
}
