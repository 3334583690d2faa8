//! A planned change of one probe or hook.

use serde_json::{Map, Value};

use crate::handler;
use crate::record::Record;

/// The location of a probe or hook in the Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub list: &'static str,
    /// The index of the container in the list.
    pub index: usize,
    pub container: String,
    /// The name of the field, for example `livenessProbe` or `preStop`.
    pub field: &'static str,
    /// True for a hook, which is below `lifecycle`.
    pub hook: bool,
}

/// The change of the probe or hook itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    /// The probe is correct; only its entry in the table was missing.
    None,
    /// The handler is replaced by a request to `key`. Hooks have no `timeout`.
    Replace { handler: &'static str, key: String, timeout: Option<Value> },
    /// The port is replaced by the status port.
    Port,
}

/// A planned change of one probe or hook and of its entry in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub place: Place,
    pub edit: Edit,
    /// The new key and entry of the table.
    pub entry: Option<(String, String)>,
}

impl Change {
    pub(crate) fn apply(self, spec: &mut Value, status_port: u16, record: &mut Record) {
        let Place { list, index, container, field, hook } = self.place;
        let parent = &mut spec[list][index];
        let parent = if hook { &mut parent["lifecycle"] } else { parent };
        let value = &mut parent[field];
        match self.edit {
            Edit::None => {}
            Edit::Port => value["httpGet"]["port"] = status_port.into(),
            Edit::Replace { handler, key, timeout } => {
                record.insert(&container, field, value.clone());
                if let Some(fields) = value.as_object_mut() {
                    replace(fields, handler, handler::replacement(&key, status_port));
                    if let Some(timeout) = timeout {
                        fields.insert("timeoutSeconds".to_owned(), timeout);
                    }
                }
            }
        }
    }
}

/// Replaces `handler` by `httpGet` at the same position.
fn replace(fields: &mut Map<String, Value>, handler: &str, http_get: Value) {
    if handler != "httpGet" {
        fields.shift_remove("httpGet");
    }
    let index = fields.keys().position(|key| key == handler).unwrap_or(0);
    fields.shift_remove(handler);
    fields.shift_insert(index, "httpGet".to_owned(), http_get);
}
