//! Merges a declared sidecar into the template's sidecar. The template is the base, and the Pod
//! overrides every leaf.

use probe::ProbeKind;
use serde_json::{Map, Value};

use crate::declared_probe::handler_names;
use crate::pod;

/// Mutually exclusive fields, as the handlers of a probe: if the Pod sets one of them, the others are
/// removed from the template.
const ENV_SOURCES: [&str; 2] = ["value", "valueFrom"];
/// Objects of which the Pod's replaces the template's: one field decides which others may exist.
const UNIONS: [&str; 3] = ["valueFrom", "seccompProfile", "appArmorProfile"];

/// Merges `pod` into `template`. `key` is the name of the field that contains both.
///
/// Lists merge by the same keys as in Kubernetes: containers, volumes, env and pull secrets by
/// name, volumeMounts by path, ports by number and protocol. In any other case the Pod's list
/// replaces the template's. `null` counts as absent.
pub(super) fn merge(template: &Value, pod: &Value, key: &str) -> Value {
    match (template, pod) {
        (Value::Object(_), Value::Object(_)) if UNIONS.contains(&key) => pod.clone(),
        (Value::Object(template), Value::Object(pod)) => Value::Object(merge_objects(template, pod, key)),
        (Value::Array(template), Value::Array(pod)) => match list_key(key) {
            Some(list_key) => Value::Array(merge_lists(template, pod, key, list_key)),
            None => Value::Array(pod.clone()),
        },
        (template, Value::Null) => template.clone(),
        (_, pod) => pod.clone(),
    }
}

fn merge_objects(template: &Map<String, Value>, pod: &Map<String, Value>, key: &str) -> Map<String, Value> {
    let one_of = match ProbeKind::ALL.into_iter().find(|kind| kind.field() == key) {
        Some(kind) => handler_names(kind),
        None if key == "env" => ENV_SOURCES.to_vec(),
        None => Vec::new(),
    };
    let there = |key: &str| pod.get(key).is_some_and(|value| !value.is_null());
    let chosen = one_of.iter().any(|key| there(key));
    let escalates = key == "securityContext" && escalates(pod);
    let mut merged = Map::new();
    for (key, value) in template {
        let is_excluded = chosen && one_of.contains(&key.as_str());
        if (is_excluded || escalates && key == "allowPrivilegeEscalation") && !there(key) {
            continue;
        }
        let value = pod.get(key).map_or_else(|| value.clone(), |pod| merge(value, pod, key));
        merged.insert(key.clone(), value);
    }
    for (key, value) in pod {
        if !template.contains_key(key) {
            merged.insert(key.clone(), value.clone());
        }
    }
    merged
}

/// True if Kubernetes rejects the security context together with `allowPrivilegeEscalation: false`.
fn escalates(context: &Map<String, Value>) -> bool {
    let added = context.get("capabilities").map(|capabilities| pod::list(capabilities, "add"));
    let mut added = added.into_iter().flatten().filter_map(Value::as_str);
    context.get("privileged").is_some_and(|privileged| *privileged == true)
        || added.any(|capability| capability == "CAP_SYS_ADMIN")
}

/// Returns the function that computes the merge key of an element in the list `key`.
fn list_key(key: &str) -> Option<fn(&Value) -> Option<String>> {
    match key {
        "containers" | "initContainers" | "volumes" | "env" | "imagePullSecrets" => {
            Some(|element| Some(pod::name(element).to_owned()).filter(|name| !name.is_empty()))
        }
        "volumeMounts" => {
            Some(|element| Some(pod::text(element, "mountPath").to_owned()).filter(|path| !path.is_empty()))
        }
        "ports" => Some(|element| {
            let number = pod::field(element, "containerPort")?;
            let protocol = pod::field(element, "protocol").and_then(Value::as_str).unwrap_or("TCP");
            Some(format!("{number}/{protocol}"))
        }),
        _ => None,
    }
}

fn merge_lists(
    template: &[Value],
    pod: &[Value],
    key: &str,
    list_key: fn(&Value) -> Option<String>,
) -> Vec<Value> {
    let of_template: Vec<Option<String>> = template.iter().map(list_key).collect();
    let mut merged: Vec<Value> = template
        .iter()
        .zip(&of_template)
        .map(|(element, wanted)| {
            // If a key occurs twice, the last one counts, as in Kubernetes.
            let same = pod.iter().rev().find(|other| wanted.is_some() && list_key(other) == *wanted);
            same.map_or_else(|| element.clone(), |other| merge(element, other, key))
        })
        .collect();
    let new = pod.iter().filter(|element| {
        let wanted = list_key(element);
        wanted.is_none() || !of_template.contains(&wanted)
    });
    merged.extend(new.cloned());
    merged
}

#[cfg(test)]
mod tests;
