//! Converts between a WorkloadEntry as JSON and a [`Record`]. Everything else is preserved: other
//! conditions, unknown fields, labels, and annotations of other writers.

mod serialize;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize as _;
use serde_json::Value;

use discovery::entries::{Auto, Condition, ConditionReason, Record, Status, Timestamp};
use discovery::objects::{Key, Spec};

pub use serialize::{created, updated, with_status};

/// Annotation with the WorkloadGroup of an auto-registered entry; other entries do not have it.
pub const GROUP: &str = "istio.io/autoRegistrationGroup";
/// Annotation that names the controller which writes this entry.
pub const CONTROLLER: &str = "istio.io/workloadController";
/// Prefix of our controller names, followed by the instance.
pub const OUR_CONTROLLER: &str = "app-health/";
const CONNECTED_AT: &str = "istio.io/connectedAt";
const DISCONNECTED_AT: &str = "istio.io/disconnectedAt";
const SESSION: &str = "app-health.io/session";
const BEFORE_UNKNOWN: &str = "app-health.io/before-unknown";
/// Annotation that says whether the condition decides about the endpoint.
pub const HEALTH_CHECKS: &str = "proxy.istio.io/health-checks-enabled";
const HEALTHY: &str = "Healthy";

pub fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][name].as_str()
}

/// Returns `resourceVersion`, which is opaque.
pub fn version(object: &Value) -> Option<&str> {
    object["metadata"]["resourceVersion"].as_str()
}

pub fn uid(object: &Value) -> Option<&str> {
    object["metadata"]["uid"].as_str()
}

/// Removes `managedFields`, the larger part of many objects. The API server keeps them if a PUT
/// omits them.
pub fn trimmed(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("managedFields");
    }
    object
}

pub fn key(object: &Value) -> Option<Key> {
    let metadata = &object["metadata"];
    Some(Key::new(metadata["namespace"].as_str()?, metadata["name"].as_str()?))
}

/// Returns the session number; an annotation that is not a number counts as 0.
pub fn session(object: &Value) -> u64 {
    annotation(object, SESSION).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// True if another control plane writes this entry.
pub fn is_foreign(object: &Value) -> bool {
    annotation(object, CONTROLLER).is_some_and(|controller| !controller.starts_with(OUR_CONTROLLER))
}

/// True if auto-registration created this entry; only those are deleted.
pub fn is_auto(object: &Value) -> bool {
    annotation(object, GROUP).is_some() && !is_foreign(object)
}

/// Reads the record from an object. If the spec cannot be parsed, an auto-registered entry has no
/// address.
pub fn record(object: &Value) -> Record {
    let time = |name| annotation(object, name).and_then(|text| text.parse().ok());
    let auto = || Auto {
        group: annotation(object, GROUP).unwrap_or_default().to_owned(),
        spec: Arc::new(spec(object)),
        annotations: foreign_annotations(object),
        health_checks: annotation(object, HEALTH_CHECKS).is_some_and(is_true),
    };
    Record {
        auto: is_auto(object).then(auto),
        controller: annotation(object, CONTROLLER).map(str::to_owned),
        session: session(object),
        connected_at: time(CONNECTED_AT),
        disconnected_at: time(DISCONNECTED_AT),
        condition: healthy(object).and_then(condition),
        before: annotation(object, BEFORE_UNKNOWN).and_then(|text| serde_json::from_value(text.into()).ok()),
        resource_version: version(object).map(str::to_owned),
    }
}

fn is_true(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True")
}

fn spec(object: &Value) -> Spec {
    Spec::deserialize(&object["spec"]).unwrap_or_default()
}

/// The part of an object that users or other controllers write.
#[derive(Debug, PartialEq)]
pub struct UserFields<'a> {
    spec: &'a Value,
    annotations: BTreeMap<String, String>,
    health_checks: Option<&'a str>,
}

/// Returns `None` for auto-registered entries.
pub fn user_fields(object: Option<&Value>) -> Option<UserFields<'_>> {
    let object = object.filter(|object| !is_auto(object))?;
    let health_checks = annotation(object, HEALTH_CHECKS);
    Some(UserFields { spec: &object["spec"], annotations: foreign_annotations(object), health_checks })
}

/// True if the object already has the record's spec.
pub fn has_spec(object: &Value, record: &Record) -> bool {
    record.auto.as_ref().is_none_or(|auto| *auto.spec == spec(object))
}

/// Returns the annotations that this control plane does not write.
pub fn foreign_annotations(object: &Value) -> BTreeMap<String, String> {
    let ours = [GROUP, CONTROLLER, CONNECTED_AT, DISCONNECTED_AT, SESSION, BEFORE_UNKNOWN, HEALTH_CHECKS];
    let all = object["metadata"]["annotations"].as_object().into_iter().flatten();
    all.filter(|(name, _)| !ours.contains(&name.as_str()))
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect()
}

fn conditions(object: &Value) -> impl Iterator<Item = &Value> {
    object["status"]["conditions"].as_array().into_iter().flatten()
}

fn healthy(object: &Value) -> Option<&Value> {
    conditions(object).find(|condition| is_healthy(condition))
}

fn is_healthy(condition: &Value) -> bool {
    condition["type"] == HEALTHY
}

fn condition(value: &Value) -> Option<Condition> {
    let text = |name: &str| value[name].as_str();
    let time = |name: &str| text(name).and_then(|text| text.parse::<Timestamp>().ok());
    let status = match text("status")? {
        "True" => Status::True,
        "False" => Status::False,
        _ => Status::Unknown,
    };
    let reason = text("reason").and_then(|word| serde_json::from_value(word.into()).ok());
    Some(Condition {
        status,
        reason: reason.unwrap_or(ConditionReason::Foreign),
        message: workload_health::text::printable(text("message").unwrap_or_default()),
        last_probe_time: time("lastProbeTime"),
        last_transition_time: time("lastTransitionTime").unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests;
