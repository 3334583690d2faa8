//! Adds the sidecar container to a Pod: its fields, its position, its lifecycle hooks, and the
//! other parts of the template.

use serde_json::{Map, Value, json};

use crate::merge::merge;
use crate::pod;
use crate::settings::{STATUS_PORT, Settings, SidecarMode};
use crate::warning::{Code, Warning};
use crate::wishes::Wishes;
use crate::{ADDRESS_VARIABLE, STATUS};

const AGENT: &str = "app-health-agent";

/// Adds the sidecar and the rest of the template to a Pod that has no sidecar, or one with `image:
/// auto`. `job` is true if the Pod belongs to a Job.
pub(super) fn inject(of: &mut Value, wishes: &Wishes, settings: &Settings, job: bool) -> Vec<Warning> {
    let template = &settings.template;
    let mut warnings = Vec::new();
    let declared = take(of, &settings.sidecar_name);
    let mut sidecar = match &declared {
        None => template.sidecar.clone(),
        Some(declared) => merge(&template.sidecar, declared, ""),
    };
    status_port(&mut sidecar, wishes.status_port);
    let mode = wishes.sidecar_mode;
    let mut hooks =
        Hooks { declared: declared.as_ref(), name: &settings.sidecar_name, warnings: &mut warnings };
    let held = match mode {
        SidecarMode::Native => {
            hooks.kept("preStop", template.sidecar.pointer("/lifecycle/preStop").is_some());
            hooks.kept("postStart", template.sidecar.pointer("/lifecycle/postStart").is_some());
            if wishes.asked_hold == Some(false) {
                warnings.push(Warning::of_pod(
                    Code::Hold,
                    "holdApplicationUntilProxyStarts has no effect: a native sidecar always starts first",
                ));
            }
            true
        }
        SidecarMode::Classic => {
            if job {
                let text = "a classic sidecar keeps the Job running: use native or app-health-agent quit";
                hooks.warnings.push(Warning::of_pod(Code::Job, text));
            }
            hooks.pre_stop(&mut sidecar);
            let always = matches!(pod::text(&of["spec"], "restartPolicy"), "" | "Always");
            wishes.hold && hooks.hold(&mut sidecar, always)
        }
    };
    place(of, sidecar, settings, mode, held);
    along(of, wishes, settings);
    warnings
}

/// Removes the declared sidecar from the Pod and returns it without the fields that only the
/// template may set.
fn take(of: &mut Value, name: &str) -> Option<Value> {
    for key in ["initContainers", "containers"] {
        let Some(list) = of["spec"].get_mut(key).and_then(Value::as_array_mut) else { continue };
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
        env.retain(|entry| pod::name(entry) != ADDRESS_VARIABLE);
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
        let variable = json!({"name": ADDRESS_VARIABLE, "value": format!("[::]:{port}")});
        pod::list_mut(sidecar, "env").push(variable);
    }
}

/// The hooks of the sidecar, as declared in the Pod.
struct Hooks<'a> {
    declared: Option<&'a Value>,
    name: &'a str,
    warnings: &'a mut Vec<Warning>,
}

impl Hooks<'_> {
    /// Returns true if the Pod itself declares this hook of the sidecar.
    fn declares(&self, hook: &str) -> bool {
        let lifecycle = self.declared.and_then(|declared| pod::field(declared, "lifecycle"));
        lifecycle.is_some_and(|lifecycle| pod::field(lifecycle, hook).is_some())
    }

    /// Warns if a hook of the Pod replaces the template's hook.
    fn kept(&mut self, hook: &str, ours: bool) {
        if ours && self.declares(hook) {
            let text = "kept as declared, the template's hook is not added";
            self.warnings.push(Warning::of_field(Code::HookKept, self.name, hook, text));
        }
    }

    /// Sets the `preStop` hook of a classic sidecar. kubelet sends SIGTERM to it and to the
    /// application at the same time, so the sidecar has to keep serving for a while.
    fn pre_stop(&mut self, sidecar: &mut Value) {
        if self.declares("preStop") {
            return self.kept("preStop", true);
        }
        let ours = json!({"exec": {"command": [AGENT, "drain"]}});
        let there = sidecar.pointer("/lifecycle/preStop").filter(|hook| !hook.is_null());
        if there.is_none_or(|hook| *hook == ours) && may_have_hooks(sidecar) {
            let drain = json!({"exec": {"command": [AGENT, "drain", "--waitSeconds", "10"]}});
            pod::object(sidecar, "lifecycle").insert("preStop".to_owned(), drain);
        }
    }

    /// Sets a `postStart` hook, so that kubelet waits for the sidecar before it starts the next
    /// container. Returns false if the hook cannot be set.
    fn hold(&mut self, sidecar: &mut Value, always: bool) -> bool {
        let mut wait = vec![json!(AGENT), json!("wait")];
        if !always {
            // kubelet kills a container whose hook fails; unless the restart policy is `Always`, it
            // would not be started again.
            wait.extend([json!("--onTimeout"), json!("continue")]);
        }
        let there = sidecar.pointer("/lifecycle/postStart").filter(|hook| !hook.is_null());
        let command = there.and_then(|hook| hook.pointer("/exec/command")).and_then(Value::as_array);
        match (there, command) {
            (None, _) => {}
            (Some(_), Some(command)) => {
                wait.push(json!("--"));
                wait.extend(command.iter().cloned());
            }
            (Some(_), None) => {
                let text = "kept as declared, so the application does not wait for the sidecar";
                self.warnings.push(Warning::of_field(Code::HookKept, self.name, "postStart", text));
                return false;
            }
        }
        if !may_have_hooks(sidecar) {
            return false;
        }
        let hook = json!({"exec": {"command": wait}});
        pod::object(sidecar, "lifecycle").insert("postStart".to_owned(), hook);
        true
    }
}

fn may_have_hooks(sidecar: &Value) -> bool {
    sidecar.get("lifecycle").is_none_or(|lifecycle| lifecycle.is_null() || lifecycle.is_object())
}

/// Inserts the sidecar and the template's other containers at their positions.
fn place(of: &mut Value, mut sidecar: Value, settings: &Settings, mode: SidecarMode, held: bool) {
    let template = &settings.template;
    let spec = &mut of["spec"];
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
fn along(of: &mut Value, wishes: &Wishes, settings: &Settings) {
    let template = &settings.template;
    for (key, elements) in
        [("volumes", &template.volumes), ("imagePullSecrets", &template.image_pull_secrets)]
    {
        if !elements.is_empty() {
            let list = pod::list_mut(&mut of["spec"], key);
            let new = elements
                .iter()
                .filter(|element| list.iter().all(|other| pod::name(other) != pod::name(element)));
            let new: Vec<Value> = new.cloned().collect();
            list.extend(new);
        }
    }
    for (key, fields) in [("labels", &template.labels), ("annotations", &template.annotations)] {
        if !fields.is_empty() {
            let there = pod::object_of_metadata(of, key);
            for (name, value) in fields {
                if there.get(name).is_none_or(Value::is_null) {
                    there.insert(name.clone(), value.clone());
                }
            }
        }
    }
    pod::annotate(of, STATUS, status(wishes, settings).to_string());
}

/// Returns the value of the status annotation, which lists what was added, so that tools can remove
/// it again.
fn status(wishes: &Wishes, settings: &Settings) -> Value {
    let template = &settings.template;
    let names = |elements: &[Value]| elements.iter().map(pod::name).map(Value::from).collect::<Vec<_>>();
    let (mut containers, mut init) = (names(&template.containers), names(&template.init_containers));
    match wishes.sidecar_mode {
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
        "mode": wishes.sidecar_mode.word(),
        "statusPort": wishes.status_port,
        "template": template.hash,
        "added": added,
    })
}
