//! Recognizes Pods that run on Windows nodes, where the sidecar cannot run.

use serde_json::Value;

use crate::pod;

/// Labels of a node with its operating system: `linux` or `windows`.
const OS_LABELS: [&str; 2] = ["kubernetes.io/os", "beta.kubernetes.io/os"];
/// A label that only Windows nodes have.
const BUILD_LABEL: &str = "node.kubernetes.io/windows-build";
const WINDOWS: &str = "windows";

/// Returns the field of the Pod that lets it run on Windows nodes only, for example
/// `spec.nodeSelector`. A RuntimeClass can have the same effect, which the Pod does not show.
pub fn field(pod: &Value) -> Option<String> {
    let spec = pod::field(pod, "spec")?;
    if let Some(os) = pod::field(spec, "os") {
        return (pod::name(os) == WINDOWS).then(|| "spec.os.name".to_owned());
    }
    if pod::field(spec, "nodeSelector").is_some_and(selects_windows) {
        return Some("spec.nodeSelector".to_owned());
    }
    if requires_windows(spec) {
        return Some("spec.affinity.nodeAffinity".to_owned());
    }
    if has_windows_options(spec) {
        return Some("spec.securityContext.windowsOptions".to_owned());
    }
    ["initContainers", "containers", "ephemeralContainers"].into_iter().find_map(|list| {
        let index = pod::list(spec, list).iter().position(has_windows_options)?;
        Some(format!("spec.{list}[{index}].securityContext.windowsOptions"))
    })
}

fn selects_windows(selector: &Value) -> bool {
    OS_LABELS.iter().any(|label| pod::text(selector, label) == WINDOWS)
        || pod::field(selector, BUILD_LABEL).is_some()
}

/// True if every node that the required affinity allows is a Windows node. A node must match one of
/// the terms, and all expressions of that term. A term without any matches no node.
fn requires_windows(spec: &Value) -> bool {
    let required = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution";
    let Some(required) = spec.pointer(required) else { return false };
    let mut terms = pod::list(required, "nodeSelectorTerms").iter().filter(|term| {
        ["matchExpressions", "matchFields"].into_iter().any(|key| !pod::list(term, key).is_empty())
    });
    let mut any = false;
    terms.all(|term| {
        any = true;
        pod::list(term, "matchExpressions").iter().any(means_windows)
    }) && any
}

fn means_windows(expression: &Value) -> bool {
    let values = pod::list(expression, "values");
    let is_windows = |value: &Value| *value == WINDOWS;
    let (key, operator) = (pod::text(expression, "key"), pod::text(expression, "operator"));
    if OS_LABELS.contains(&key) {
        return match operator {
            "In" => !values.is_empty() && values.iter().all(is_windows),
            "NotIn" => values.iter().any(|value| *value == "linux") && !values.iter().any(is_windows),
            _ => false,
        };
    }
    key == BUILD_LABEL && matches!(operator, "In" | "Exists" | "Gt" | "Lt")
}

/// True if the security context of a Pod or container has an option for Windows.
fn has_windows_options(parent: &Value) -> bool {
    let options = parent.pointer("/securityContext/windowsOptions").and_then(Value::as_object);
    options.is_some_and(|options| options.values().any(|value| !value.is_null()))
}

#[cfg(test)]
mod tests;
