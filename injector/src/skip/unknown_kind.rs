//! Finds Pod templates and probes that are not injected: in objects of unknown kinds, and beside the
//! fields that `--template-path` names.

use probe::{HandlerKind, ProbeKind};
use serde_json::Value;

use super::Skip;
use crate::kinds::{self, group_of};
use crate::{pod, workload};

/// Maximum depth at which a Pod template is looked for.
const DEPTH: usize = 12;

/// Returns why an object of an unknown kind is skipped; `None` if it contains neither a Pod template
/// nor a probe.
pub(super) fn find(object: &workload::Object) -> Option<Skip> {
    let kind = kind_of(object);
    let Some(found) = templates(object.value).into_iter().next() else {
        let field = fields(object.value, &is_probe).into_iter().next()?.path;
        return Some(Skip::UnknownProbe { kind, field });
    };
    match kinds::api_version(object.kind) {
        Some((known, version)) if kinds::is_group_of_kubernetes(group_of(object.version)) => {
            Some(Skip::WrongVersion { kind: known, version })
        }
        _ => Some(Skip::UnknownKind { kind, field: found.path, can_be_named: found.can_be_named }),
    }
}

/// Returns the Pod templates that no `--template-path` names; `named` are the paths of those that one
/// names.
pub(super) fn unnamed(object: &workload::Object, named: &[String]) -> Vec<(String, Skip)> {
    let is_named = |path: &str| {
        named.iter().any(|named| {
            path.strip_prefix(named.as_str()).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
        })
    };
    let others = templates(object.value).into_iter().filter(|found| !is_named(&found.path));
    let kind = kind_of(object);
    others
        .map(|found| {
            let Found { path: field, can_be_named } = found;
            (object.field(&field), Skip::Unnamed { kind: kind.clone(), field, can_be_named })
        })
        .collect()
}

/// Returns the kind with its group: `Game.example.com`.
fn kind_of(object: &workload::Object) -> String {
    match group_of(object.version) {
        "" => object.kind.to_owned(),
        group => format!("{}.{group}", object.kind),
    }
}

/// A field that was found in an object.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    path: String,
    /// True if no list is above it.
    can_be_named: bool,
}

/// Returns the fields whose name ends in `template` and whose `spec` has a list of containers.
fn templates(object: &Value) -> Vec<Found> {
    fields(object, &|key, value| key.to_ascii_lowercase().ends_with("template") && has_containers(value))
}

fn has_containers(template: &Value) -> bool {
    let containers = pod::list(&template["spec"], "containers");
    !containers.is_empty() && containers.iter().all(Value::is_object)
}

fn is_probe(key: &str, value: &Value) -> bool {
    ProbeKind::PROBES.into_iter().any(|kind| kind.field() == key)
        && HandlerKind::ALL.into_iter().any(|handler| value[handler.name()].is_object())
}

/// Returns the outermost fields that `is_wanted` accepts.
fn fields(object: &Value, is_wanted: &impl Fn(&str, &Value) -> bool) -> Vec<Found> {
    let mut found = Vec::new();
    collect(object, &Found { path: String::new(), can_be_named: true }, DEPTH, is_wanted, &mut found);
    found
}

fn collect(
    value: &Value,
    at: &Found,
    depth: usize,
    is_wanted: &impl Fn(&str, &Value) -> bool,
    found: &mut Vec<Found>,
) {
    let Some(depth) = depth.checked_sub(1) else { return };
    match value {
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                let at = Found { path: format!("{}[{index}]", at.path), can_be_named: false };
                collect(element, &at, depth, is_wanted, found);
            }
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                let path = if at.path.is_empty() { key.clone() } else { format!("{}.{key}", at.path) };
                let at = Found { path, can_be_named: at.can_be_named };
                if is_wanted(key, value) {
                    found.push(at);
                } else {
                    collect(value, &at, depth, is_wanted, found);
                }
            }
        }
        _ => {}
    }
}
