//! Finds Pod templates in objects of unknown kinds.

use serde_json::Value;

use super::Skip;
use crate::kinds::{self, group_of};
use crate::{pod, workload};

/// Maximum depth at which a Pod template is looked for.
const DEPTH: usize = 12;

/// Returns why an object of an unknown kind is skipped; `None` if it contains no Pod template.
pub(super) fn find(object: &workload::Object) -> Option<Skip> {
    let (field, can_be_named) = template(object.value, "", true, DEPTH)?;
    let kind = match group_of(object.version) {
        "" => object.kind.to_owned(),
        group => format!("{}.{group}", object.kind),
    };
    match kinds::api_version(object.kind) {
        Some((known, version)) if kinds::is_group_of_kubernetes(group_of(object.version)) => {
            Some(Skip::WrongVersion { kind: known, version })
        }
        _ => Some(Skip::UnknownKind { kind, field, can_be_named }),
    }
}

/// Returns the path of the first field whose name ends in `template` and whose `spec` has a list of
/// containers, and whether no list is above it.
fn template(value: &Value, path: &str, can_be_named: bool, depth: usize) -> Option<(String, bool)> {
    if depth == 0 {
        return None;
    }
    match value {
        Value::Array(elements) => elements
            .iter()
            .enumerate()
            .find_map(|(index, element)| template(element, &format!("{path}[{index}]"), false, depth - 1)),
        Value::Object(fields) => fields.iter().find_map(|(key, value)| {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let is_template = key.to_ascii_lowercase().ends_with("template") && has_containers(value);
            if is_template {
                Some((path, can_be_named))
            } else {
                template(value, &path, can_be_named, depth - 1)
            }
        }),
        _ => None,
    }
}

fn has_containers(template: &Value) -> bool {
    let containers = pod::list(&template["spec"], "containers");
    !containers.is_empty() && containers.iter().all(Value::is_object)
}
