//! Access to the fields of a Pod as a JSON value. A field that is absent, `null` or of another type
//! counts as not set.

use serde_json::{Map, Value};

/// The error for a value that is not a valid Pod.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}{reason}", .field, if .field.is_empty() { "" } else { ": " })]
pub struct InvalidPod {
    /// The dotted path inside the Pod; empty for the Pod itself.
    pub field: String,
    /// A text such as `must be a list`.
    pub reason: &'static str,
}

/// Returns `value[key]` unless it is absent or `null`.
pub fn field<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    value.get(key).filter(|value| !value.is_null())
}

/// Returns the elements of the list `value[key]`; none if it is not a list.
pub fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns a string field; empty if it is not a string.
pub fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the field `name`; empty if it is not a string.
pub fn name(value: &Value) -> &str {
    text(value, "name")
}

/// Returns an annotation of the Pod or of another object.
pub fn annotation<'a>(pod: &'a Value, name: &str) -> Option<&'a Value> {
    field(field(field(pod, "metadata")?, "annotations")?, name)
}

/// Returns a label of the Pod or of another object.
pub fn label<'a>(pod: &'a Value, name: &str) -> Option<&'a Value> {
    field(field(field(pod, "metadata")?, "labels")?, name)
}

/// Returns the path of an annotation below an object.
pub fn annotation_path(name: &str) -> String {
    format!("metadata.annotations[\"{name}\"]")
}

/// Returns the path of a label below an object.
pub fn label_path(name: &str) -> String {
    format!("metadata.labels[\"{name}\"]")
}

/// The lists of containers that `spec` of a Pod declares.
pub(crate) const CONTAINER_LISTS: [&str; 2] = ["initContainers", "containers"];

/// Returns the init containers and the containers of `spec`.
pub(crate) fn containers(spec: &Value) -> impl Iterator<Item = &Value> {
    CONTAINER_LISTS.into_iter().flat_map(|key| list(spec, key))
}

/// Returns the containers of `spec`, of both lists, to change them.
pub(crate) fn containers_mut(spec: &mut Value) -> impl Iterator<Item = &mut Value> {
    let fields = spec.as_object_mut().into_iter().flatten();
    let lists = fields.filter(|(key, _)| CONTAINER_LISTS.contains(&key.as_str()));
    lists.filter_map(|(_, list)| list.as_array_mut()).flatten()
}

/// Returns true if an init container is a native sidecar, which keeps running.
pub fn is_native_sidecar(container: &Value) -> bool {
    text(container, "restartPolicy") == "Always"
}

/// Returns the object `value[key]`, and creates it if it is absent. Panics unless [`check`] has
/// accepted the Pod.
pub(super) fn object<'a>(value: &'a mut Value, key: &str) -> &'a mut Map<String, Value> {
    let fields = value.as_object_mut().expect("an object: `check` accepted the Pod");
    if fields.get(key).is_none_or(Value::is_null) {
        fields.insert(key.to_owned(), Value::Object(Map::new()));
    }
    fields.get_mut(key).and_then(Value::as_object_mut).expect("an object: `check` accepted the Pod")
}

/// Returns the list `value[key]`, and creates it if it is absent. Panics unless [`check`] has
/// accepted the Pod.
pub(super) fn list_mut<'a>(value: &'a mut Value, key: &str) -> &'a mut Vec<Value> {
    let fields = value.as_object_mut().expect("an object: `check` accepted the Pod");
    if fields.get(key).is_none_or(Value::is_null) {
        fields.insert(key.to_owned(), Value::Array(Vec::new()));
    }
    fields.get_mut(key).and_then(Value::as_array_mut).expect("a list: `check` accepted the Pod")
}

pub(super) fn annotate(pod: &mut Value, name: &str, text: String) {
    object_of_metadata(pod, "annotations").insert(name.to_owned(), Value::String(text));
}

/// Returns `metadata.labels` or `metadata.annotations`, and creates it if it is absent. New
/// metadata is inserted near the front, where readers expect it.
pub(super) fn object_of_metadata<'a>(pod: &'a mut Value, key: &str) -> &'a mut Map<String, Value> {
    let fields = pod.as_object_mut().expect("an object: `check` accepted the Pod");
    match fields.get_mut("metadata") {
        Some(metadata) if !metadata.is_null() => {}
        Some(metadata) => *metadata = Value::Object(Map::new()),
        None => {
            let front = ["apiVersion", "kind"].iter().filter(|key| fields.contains_key(**key)).count();
            fields.shift_insert(front, "metadata".to_owned(), Value::Object(Map::new()));
        }
    }
    object(fields.get_mut("metadata").expect("inserted above"), key)
}

/// Checks the shape of a Pod on which the other functions rely.
pub(super) fn check(pod: &Value) -> Result<(), InvalidPod> {
    let refuse = |field: &str, reason| Err(InvalidPod { field: field.to_owned(), reason });
    let Some(fields) = pod.as_object() else { return refuse("", "must be an object") };
    if let Some(metadata) = field(pod, "metadata") {
        if !metadata.is_object() {
            return refuse("metadata", "must be an object");
        }
        for key in ["labels", "annotations"] {
            if field(metadata, key).is_some_and(|value| !value.is_object()) {
                return refuse(&format!("metadata.{key}"), "must be an object");
            }
        }
    }
    let Some(spec) = fields.get("spec").filter(|spec| spec.is_object()) else {
        return refuse("spec", "must be an object");
    };
    if !spec.get("containers").is_some_and(Value::is_array) {
        return refuse("spec.containers", "must be a list");
    }
    for key in ["initContainers", "volumes", "imagePullSecrets"] {
        if field(spec, key).is_some_and(|value| !value.is_array()) {
            return refuse(&format!("spec.{key}"), "must be a list");
        }
    }
    for key in CONTAINER_LISTS {
        if let Some(index) = list(spec, key).iter().position(|container| !container.is_object()) {
            return refuse(&format!("spec.{key}[{index}]"), "must be an object");
        }
    }
    Ok(())
}
