//! Writes a [`Record`] into the JSON of its object.

use serde_json::{Map, Value, json};

use super::{
    BEFORE_UNKNOWN, CONNECTED_AT, CONTROLLER, DISCONNECTED_AT, GROUP, HEALTH_CHECKS, HEALTHY, SESSION,
    condition, conditions, spec,
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
    let Some(there) = fields(metadata, "annotations") else { return };
    for (name, value) in annotations {
        match value {
            Some(value) if there.get(name).is_none_or(|there| *there != value.as_str()) => {
                there.insert(name.to_owned(), value.into());
            }
            Some(_) => {}
            None => {
                there.shift_remove(name);
            }
        }
    }
}

/// Sets or removes every field that a spec has; unknown fields are kept.
fn write_spec(object: &mut Value, wanted: &Spec) {
    let Ok(Value::Object(wanted)) = serde_json::to_value(wanted) else { return };
    let Some(there) = fields(object, "spec") else { return };
    for name in ["ports", "labels", "network", "locality", "weight", "serviceAccount"] {
        if !wanted.contains_key(name) {
            there.shift_remove(name);
        }
    }
    there.extend(wanted);
}

fn write_condition(object: &mut Value, wanted: Option<&Condition>) {
    let there: Vec<Value> = conditions(object).cloned().collect();
    let is_healthy = |value: &Value| value.get("type").is_some_and(|kind| kind == HEALTHY);
    let current = there.iter().position(is_healthy);
    if wanted.is_none() && current.is_none() {
        return;
    }
    if wanted.is_some_and(|wanted| current.is_some_and(|at| condition(&there[at]).as_ref() == Some(wanted))) {
        return;
    }
    let condition_json = wanted.map(|wanted| condition_json(current.map(|at| &there[at]), wanted));
    let at = current.unwrap_or(there.len());
    let mut conditions: Vec<Value> = Vec::with_capacity(there.len() + 1);
    conditions.extend(there[..at].iter().cloned());
    conditions.extend(condition_json);
    // Further conditions of this type are removed, since a client could read the wrong one.
    conditions.extend(there.into_iter().skip(at + 1).filter(|value| !is_healthy(value)));
    let Some(status) = fields(object, "status") else { return };
    status.insert("conditions".to_owned(), conditions.into());
}

fn condition_json(current: Option<&Value>, wanted: &Condition) -> Value {
    let mut condition = current.cloned().unwrap_or_else(|| json!({}));
    let Condition { status, reason, message, last_probe_time, last_transition_time } = wanted;
    let fields = [
        ("type", Some(HEALTHY.to_owned())),
        ("status", Some(status.to_string())),
        ("reason", Some(reason.to_string())),
        ("message", (!message.is_empty()).then(|| message.clone())),
        ("lastProbeTime", last_probe_time.map(|time| time.to_string())),
        ("lastTransitionTime", Some(last_transition_time.to_string())),
    ];
    if let Some(condition) = condition.as_object_mut() {
        for (name, value) in fields {
            match value {
                Some(value) => condition.insert(name.to_owned(), value.into()),
                None => condition.shift_remove(name),
            };
        }
    }
    condition
}
