//! The lifecycle hooks of the sidecar.

use serde_json::{Value, json};

use crate::pod;
use crate::warning::{Code, Warning};

const AGENT: &str = "app-health-agent";

/// The hooks of the sidecar, as declared in the Pod.
pub(super) struct Hooks<'a> {
    pub(super) declared: Option<&'a Value>,
    pub(super) name: &'a str,
    pub(super) warnings: &'a mut Vec<Warning>,
}

impl Hooks<'_> {
    /// Returns true if the Pod itself declares this hook of the sidecar.
    fn declares(&self, hook: &str) -> bool {
        let lifecycle = self.declared.and_then(|declared| pod::field(declared, "lifecycle"));
        lifecycle.is_some_and(|lifecycle| pod::field(lifecycle, hook).is_some())
    }

    /// Warns if a hook of the Pod replaces the template's hook.
    pub(super) fn warn_if_declared(&mut self, hook: &str, ours: bool) {
        if ours && self.declares(hook) {
            let text = "kept as declared, the template's hook is not added";
            self.warnings.push(Warning::about_field(Code::HookKept, self.name, hook, text));
        }
    }

    /// Sets the `preStop` hook of a classic sidecar. kubelet sends SIGTERM to it and to the
    /// application at the same time, so the sidecar has to keep serving for a while.
    pub(super) fn pre_stop(&mut self, sidecar: &mut Value) {
        if self.declares("preStop") {
            return self.warn_if_declared("preStop", true);
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
    pub(super) fn hold(&mut self, sidecar: &mut Value, always: bool) -> bool {
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
                self.warnings.push(Warning::about_field(Code::HookKept, self.name, "postStart", text));
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
