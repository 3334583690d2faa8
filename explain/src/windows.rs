//! Whether a node runs Windows, for which there is no sidecar. `injector::windows` reads the Pod.

use serde_json::Value;

/// Labels of a node with its operating system.
const LABELS: [&str; 2] = ["kubernetes.io/os", "beta.kubernetes.io/os"];

/// Returns what says that a node runs Windows.
pub(crate) fn node_field(node: &Value) -> Option<String> {
    let is_labelled = LABELS.iter().any(|label| node["metadata"]["labels"][*label] == "windows");
    let is_windows = is_labelled || node["status"]["nodeInfo"]["operatingSystem"] == "windows";
    is_windows.then(|| "the operating system of its node".to_owned())
}
