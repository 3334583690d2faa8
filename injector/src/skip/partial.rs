//! Recognizes a part of a workload, such as a strategic merge patch: a field is missing that the API
//! server requires.

use serde_json::Value;

use crate::kinds::{Kind, Required, Template};
use crate::pod;

/// Keys that exist only in strategic merge patches.
const DIRECTIVES: [&str; 4] = ["$patch", "$retainKeys", "$setElementOrder/", "$deleteFromPrimitiveList/"];

/// Returns true if a list contains operations of a JSON patch.
pub(super) fn is_json_patch(elements: &[Value]) -> bool {
    let is_operation = |element: &Value| element["op"].is_string() && element["path"].is_string();
    !elements.is_empty() && elements.iter().all(is_operation)
}

/// Returns why a workload is a part of an object. A field of another type than in Kubernetes is not
/// missing; it is an error of the object.
pub(super) fn missing(object: &Value, kind: &Kind) -> Option<String> {
    if let Some(directive) = directive(object) {
        return Some(format!("it contains {directive}"));
    }
    let Template::At(path) = &kind.template else { return None };
    let mut place = object;
    for (index, step) in path.iter().enumerate() {
        match pod::field(place, step) {
            None => {
                let of_flag = kind.named().map(|path| format!(", and --template-path names {path}"));
                return Some(format!(
                    "it has no {}{}",
                    path[..=index].join("."),
                    of_flag.unwrap_or_default()
                ));
            }
            Some(value) if value.is_object() => place = value,
            Some(_) => return None,
        }
    }
    let prefix = if path.is_empty() { String::new() } else { path.join(".") + "." };
    let Some(spec) = pod::field(place, "spec") else { return Some(format!("it has no {prefix}spec")) };
    missing_container(object, spec, &prefix).or_else(|| missing_field(object, place, kind.required, &prefix))
}

/// Returns the first key in a document that exists only in patches.
fn directive(value: &Value) -> Option<&str> {
    match value {
        Value::Array(elements) => elements.iter().find_map(directive),
        Value::Object(fields) => fields.iter().find_map(|(key, value)| {
            let is_directive = DIRECTIVES.iter().any(|directive| match directive.ends_with('/') {
                true => key.starts_with(directive),
                false => key == directive,
            });
            if is_directive { Some(key.as_str()) } else { directive(value) }
        }),
        _ => None,
    }
}

fn missing_container(object: &Value, spec: &Value, prefix: &str) -> Option<String> {
    if !spec.is_object() {
        return None;
    }
    match pod::field(spec, "containers") {
        None => return Some(format!("it has no {prefix}spec.containers")),
        Some(Value::Array(containers)) if containers.is_empty() => {
            return Some(format!("{prefix}spec.containers is empty"));
        }
        Some(_) => {}
    }
    pod::CONTAINER_LISTS.into_iter().find_map(|list| {
        let containers = pod::list(spec, list).iter().filter(|container| container.is_object());
        let mut containers = containers.filter(|container| pod::field(container, "image").is_none());
        let container = containers.find(|container| !is_set_by_trigger(object, pod::name(container)))?;
        Some(match pod::name(container) {
            "" => format!("a container in {prefix}spec.{list} has no image"),
            name => format!("container {name} has no image"),
        })
    })
}

/// Returns true if OpenShift sets the image of a container in a DeploymentConfig.
fn is_set_by_trigger(object: &Value, container: &str) -> bool {
    pod::list(&object["spec"], "triggers").iter().any(|trigger| {
        let names = pod::list(&trigger["imageChangeParams"], "containerNames");
        names.iter().any(|name| name == container)
    })
}

fn missing_field(object: &Value, template: &Value, required: Required, prefix: &str) -> Option<String> {
    let spec = &object["spec"];
    let has_labels = || pod::field(&template["metadata"], "labels").is_some();
    let has_restart_policy = || pod::field(&template["spec"], "restartPolicy").is_some();
    let field = match required {
        Required::Selector if pod::field(spec, "selector").is_none() => "spec.selector".to_owned(),
        Required::Selector | Required::Labels if !has_labels() => format!("{prefix}metadata.labels"),
        Required::Schedule if pod::field(spec, "schedule").is_none() => "spec.schedule".to_owned(),
        Required::Schedule | Required::RestartPolicy if !has_restart_policy() => {
            format!("{prefix}spec.restartPolicy")
        }
        _ => return None,
    };
    Some(format!("it has no {field}"))
}
