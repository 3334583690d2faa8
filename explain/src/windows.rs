//! Whether a Pod runs on Windows, for which there is no sidecar.

use serde_json::Value;

use crate::container::list;

/// Labels of a node with its operating system.
const LABELS: [&str; 2] = ["kubernetes.io/os", "beta.kubernetes.io/os"];
/// A label that only Windows nodes have.
const BUILD_LABEL: &str = "node.kubernetes.io/windows-build";

/// Returns the field of a Pod that places it on Windows nodes, if there is one.
pub(crate) fn field(pod: &Value) -> Option<String> {
    let spec = &pod["spec"];
    let os = &spec["os"]["name"];
    let selector = &spec["nodeSelector"];
    let selects =
        LABELS.iter().any(|label| selector[*label] == "windows") || selector[BUILD_LABEL].is_string();
    let options = |owner: &Value| owner["securityContext"]["windowsOptions"].is_object();
    let mut containers = ["containers", "initContainers"].into_iter().flat_map(|key| list(&spec[key]));
    let field = match () {
        () if os.is_string() => (os == "windows").then_some("spec.os.name"),
        () if selects => Some("spec.nodeSelector"),
        () if requires_windows(spec) => Some("spec.affinity.nodeAffinity"),
        () if options(spec) || containers.any(options) => Some("securityContext.windowsOptions"),
        () => None,
    };
    field.map(str::to_owned)
}

/// Returns what says that a node runs Windows.
pub(crate) fn node_field(node: &Value) -> Option<String> {
    let is_labelled = LABELS.iter().any(|label| node["metadata"]["labels"][*label] == "windows");
    let is_windows = is_labelled || node["status"]["nodeInfo"]["operatingSystem"] == "windows";
    is_windows.then(|| "the operating system of its node".to_owned())
}

/// Returns true if each term of the required node affinity, of which one must hold, asks for Windows.
fn requires_windows(spec: &Value) -> bool {
    let required = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let terms = list(&required["nodeSelectorTerms"]);
    !terms.is_empty() && terms.iter().all(|term| list(&term["matchExpressions"]).iter().any(asks_for_windows))
}

fn asks_for_windows(expression: &Value) -> bool {
    let values = list(&expression["values"]);
    let has = |name: &str| values.iter().any(|value| value == name);
    let is_os = LABELS.iter().any(|label| expression["key"] == *label);
    match expression["operator"].as_str() {
        Some("In") if is_os => *values == [Value::from("windows")],
        Some("NotIn") if is_os => has("linux") && !has("windows"),
        Some("In" | "Exists") => expression["key"] == BUILD_LABEL,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
