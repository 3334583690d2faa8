//! Whether a Pod runs on Windows, for which there is no sidecar.

use serde_json::Value;

use crate::container::list;

const LABELS: [&str; 2] = ["kubernetes.io/os", "beta.kubernetes.io/os"];

/// Returns the field of a Pod that places it on Windows nodes, if there is one.
pub(crate) fn field(pod: &Value) -> Option<&'static str> {
    let spec = &pod["spec"];
    let selects = |key: &&str| spec["nodeSelector"][*key] == "windows";
    let options = |owner: &Value| owner["securityContext"]["windowsOptions"].is_object();
    let containers = ["containers", "initContainers"].map(|key| list(&spec[key]));
    match () {
        () if spec["os"]["name"] == "windows" => Some("spec.os.name"),
        // It says more than any other field.
        () if spec["os"]["name"].is_string() => None,
        () if LABELS.iter().any(selects) => Some("spec.nodeSelector"),
        () if requires_windows(spec) => Some("spec.affinity.nodeAffinity"),
        () if options(spec) || containers.into_iter().flatten().any(options) => {
            Some("securityContext.windowsOptions")
        }
        () => None,
    }
}

/// Returns what says that a node runs Windows.
pub(crate) fn node_field(node: &Value) -> Option<&'static str> {
    let is_labelled = LABELS.iter().any(|label| node["metadata"]["labels"][*label] == "windows");
    let is_windows = is_labelled || node["status"]["nodeInfo"]["operatingSystem"] == "windows";
    is_windows.then_some("the operating system of its node")
}

/// Returns true if each term of the required node affinity, of which one must hold, asks for Windows.
fn requires_windows(spec: &Value) -> bool {
    let required = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let terms = list(&required["nodeSelectorTerms"]);
    let is_windows = |expression: &Value| {
        LABELS.iter().any(|label| expression["key"] == *label)
            && expression["operator"] == "In"
            && *list(&expression["values"]) == [Value::from("windows")]
    };
    !terms.is_empty() && terms.iter().all(|term| list(&term["matchExpressions"]).iter().any(is_windows))
}

#[cfg(test)]
mod tests;
