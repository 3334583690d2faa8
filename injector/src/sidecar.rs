//! The sidecar: its fields, its place, its hooks, and what comes along with it.

use serde_json::{Map, Value, json};

use crate::merge::merge;
use crate::pod;
use crate::settings::{STATUS_PORT, Settings, SidecarMode};
use crate::warning::{Code, Warning};
use crate::wishes::Wishes;
use crate::{ADDRESS_VARIABLE, STATUS};

const AGENT: &str = "app-health-agent";

/// Puts the sidecar and all that the template holds into a Pod that has none, or one with `image: auto`.
///
/// `job`: the Pod belongs to a Job.
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
                warnings.push(Warning::of_pod(Code::Hold, "a native sidecar starts first"));
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

/// Takes the declared sidecar out of the Pod, without the fields that are not its author's to say.
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

/// Another status port than 15020 is told to the agent, and declared.
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

/// The sidecar's hooks, and what its author made of them.
struct Hooks<'a> {
    declared: Option<&'a Value>,
    name: &'a str,
    warnings: &'a mut Vec<Warning>,
}

impl Hooks<'_> {
    /// Whether the Pod declares this hook of the sidecar itself.
    fn declares(&self, hook: &str) -> bool {
        let lifecycle = self.declared.and_then(|declared| pod::field(declared, "lifecycle"));
        lifecycle.is_some_and(|lifecycle| pod::field(lifecycle, hook).is_some())
    }

    /// Warns if a hook of ours makes room for one of the Pod's.
    fn kept(&mut self, hook: &str, ours: bool) {
        if ours && self.declares(hook) {
            let text = "stays as it is declared, the template's is left out";
            self.warnings.push(Warning::of_field(Code::HookKept, self.name, hook, text));
        }
    }

    /// A classic sidecar gets SIGTERM together with the application, and has to drain for a while.
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

    /// Makes kubelet wait for the sidecar before it starts the next container; whether it does.
    fn hold(&mut self, sidecar: &mut Value, always: bool) -> bool {
        let mut wait = vec![json!(AGENT), json!("wait")];
        if !always {
            // A failed hook would kill the sidecar for good where nothing restarts it.
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
                let text = "stays as it is, so nothing holds the application back";
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

/// Puts the sidecar where it belongs, and the template's other containers around it.
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

/// Behind the name, where people look for what a container is.
fn set_restart_policy(sidecar: &mut Value) {
    if let Some(fields) = sidecar.as_object_mut() {
        fields.shift_insert(1.min(fields.len()), "restartPolicy".to_owned(), "Always".into());
    }
}

/// An empty list of init containers just before the containers.
fn before_containers(spec: &mut Value) {
    if let Some(fields) = spec.as_object_mut() {
        fields.shift_remove("initContainers");
        let index = fields.keys().position(|key| key == "containers").unwrap_or(0);
        fields.shift_insert(index, "initContainers".to_owned(), json!([]));
    }
}

/// Volumes, pull secrets, labels and annotations of the template, and the record of what was done.
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

/// What was added, for whoever wants to take it out again.
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
