//! The prober table of the sidecar, as the Pod declares it.

use injector::PROBERS_ENV;
use serde_json::Value;

use crate::container::{Container, Role, list};

/// What the table has at the path of a probe.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Entry {
    Declared(Value),
    /// The table lacks the path; the name is that of the sidecar.
    Missing(String),
    /// The table is not in the Pod, or cannot be read.
    Unknown,
}

/// Returns true if no container of the Pod can answer a rewritten probe.
pub(crate) fn has_no_sidecar(pod: &Value) -> bool {
    Container::all(pod).iter().all(|container| container.role != Role::Proxy)
}

/// Looks up the path, without its query.
pub(crate) fn entry(pod: &Value, path: &str) -> Entry {
    let containers = Container::all(pod);
    let Some(sidecar) = containers.iter().find(|container| container.role == Role::Proxy) else {
        return Entry::Unknown;
    };
    let variable = list(&sidecar.value["env"]).iter().find(|variable| variable["name"] == PROBERS_ENV);
    let table = variable.and_then(|variable| variable["value"].as_str());
    let Some(Value::Object(table)) = table.and_then(|text| serde_json::from_str(text).ok()) else {
        return Entry::Unknown;
    };
    let path = path.split('?').next().unwrap_or_default();
    table
        .get(path)
        .map_or_else(|| Entry::Missing(sidecar.name.to_owned()), |probe| Entry::Declared(probe.clone()))
}
