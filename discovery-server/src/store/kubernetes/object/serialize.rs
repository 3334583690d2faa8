//! Writes a [`Record`] into the JSON of its object.

use serde_json::{Map, Value, json};

use super::{
    BEFORE_UNKNOWN, CONNECTED_AT, CONTROLLER, DISCONNECTED_AT, GROUP, HEALTH_CHECKS, HEALTHY, SESSION,
    condition, conditions, is_healthy, spec,
};
use discovery::entries::{Auto, Before, Condition, Record, Timestamp};
use discovery::objects::{Key, Spec};

/// Returns the object of a new auto-registered entry. Its status is written by a separate request
/// later.
pub fn created(key: &Key, record: &Record, auto: &Auto) -> Value {
    let mut object = json!({
        "apiVersion": "networking.istio.io/v1", "kind": "WorkloadEntry",
        "metadata": {"name": key.name, "namespace": key.namespace, "annotations": auto.annotations},
        "spec": {},
    });
    write_main(&mut object, record, true);
    object
}

/// Returns `current` with the record's metadata and, if `with_spec`, its spec; `None` if nothing
/// changes.
pub fn updated(current: &Value, record: &Record, with_spec: bool) -> Option<Value> {
    let mut object = current.clone();
    write_main(&mut object, record, with_spec);
    (object != *current).then_some(object)
}

/// Returns `current` with the record's condition; `None` if nothing changes.
pub fn with_status(current: &Value, record: &Record) -> Option<Value> {
    let mut object = current.clone();
    write_condition(&mut object, record.condition.as_ref());
    (object != *current).then_some(object)
}

/// Returns the mapping `name`; creates it if it is absent, and replaces a value of another type,
/// which the API server would have rejected.
fn fields<'a>(object: &'a mut Value, name: &str) -> Option<&'a mut Map<String, Value>> {
    let value = object.as_object_mut()?.entry(name).or_insert_with(|| json!({}));
    if !value.is_object() {
        *value = json!({});
    }
    value.as_object_mut()
}

fn write_main(object: &mut Value, record: &Record, with_spec: bool) {
    let Record { auto, controller, session, connected_at, disconnected_at, before, .. } = record;
    let time = |time: &Option<Timestamp>| time.map(|time| time.to_string());
    let mut annotations = vec![
        (CONTROLLER, controller.clone()),
        (CONNECTED_AT, time(connected_at)),
        (DISCONNECTED_AT, time(disconnected_at)),
        (SESSION, (*session > 0).then(|| session.to_string())),
        (BEFORE_UNKNOWN, before.map(|before: Before| format!("{before:?}"))),
    ];
    if let Some(auto) = auto {
        annotations.push((GROUP, Some(auto.group.clone())));
        annotations.push((HEALTH_CHECKS, auto.health_checks.then(|| "true".to_owned())));
        if with_spec && spec(object) != *auto.spec {
            write_spec(object, &auto.spec);
        }
    }
    let Some(metadata) = object.get_mut("metadata") else { return };
    if annotations.iter().all(|(_, value)| value.is_none()) && metadata.get("annotations").is_none() {
        return;
    }
    if let Some(current) = fields(metadata, "annotations") {
        set_all(current, annotations);
    }
}

/// Sets or removes every field that a spec has; unknown fields are kept.
fn write_spec(object: &mut Value, wanted: &Spec) {
    let Ok(Value::Object(wanted)) = serde_json::to_value(wanted) else { return };
    let Some(current) = fields(object, "spec") else { return };
    for name in ["ports", "labels", "network", "locality", "weight", "serviceAccount"] {
        if !wanted.contains_key(name) {
            current.shift_remove(name);
        }
    }
    current.extend(wanted);
}

fn write_condition(object: &mut Value, wanted: Option<&Condition>) {
    let before: Vec<Value> = conditions(object).cloned().collect();
    let current = before.iter().find(|value| is_healthy(value));
    if current.is_some() == wanted.is_some() && current.and_then(condition).as_ref() == wanted {
        return;
    }
    let mut new = wanted.map(|wanted| condition_json(current, wanted));
    // Further conditions of this type are removed, since a client could read the wrong one.
    let replace = |value: &Value| if is_healthy(value) { new.take() } else { Some(value.clone()) };
    let mut conditions: Vec<Value> = before.iter().filter_map(replace).collect();
    conditions.extend(new);
    let Some(status) = fields(object, "status") else { return };
    status.insert("conditions".to_owned(), conditions.into());
}

fn condition_json(current: Option<&Value>, wanted: &Condition) -> Value {
    let mut condition = current.and_then(Value::as_object).cloned().unwrap_or_default();
    let Condition { status, reason, message, last_probe_time, last_transition_time } = wanted;
    let fields = [
        ("type", Some(HEALTHY.to_owned())),
        ("status", Some(status.to_string())),
        ("reason", Some(reason.to_string())),
        ("message", (!message.is_empty()).then(|| message.clone())),
        ("lastProbeTime", last_probe_time.map(|time| time.to_string())),
        ("lastTransitionTime", Some(last_transition_time.to_string())),
    ];
    set_all(&mut condition, fields);
    condition.into()
}

/// Sets the fields that have a value, and removes the others.
fn set_all<'a>(
    mapping: &mut Map<String, Value>,
    fields: impl IntoIterator<Item = (&'a str, Option<String>)>,
) {
    for (name, value) in fields {
        match value {
            Some(value) => mapping.insert(name.to_owned(), value.into()),
            None => mapping.shift_remove(name),
        };
    }
}
