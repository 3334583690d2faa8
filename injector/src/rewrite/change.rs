//! One change of one probe or hook.

use serde_json::{Map, Value};

use crate::handler;
use crate::record::Record;

/// Where a probe or hook stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// `containers` or `initContainers`.
    pub list: &'static str,
    /// Its container there.
    pub index: usize,
    /// The container's name.
    pub container: String,
    /// `livenessProbe`, `preStop` and so on.
    pub field: &'static str,
    /// Whether it is a hook, which stands below `lifecycle`.
    pub hook: bool,
}

/// What happens to the Pod there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    /// Nothing: only the entry was missing.
    None,
    /// The handler leads to `key`; hooks have no timeout.
    Replace { handler: &'static str, key: String, timeout: Option<Value> },
    /// The port becomes the status port.
    Port,
}

/// A change that can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub place: Place,
    pub edit: Edit,
    /// What the table gets: key and entry.
    pub entry: Option<(String, String)>,
}

impl Change {
    /// Makes it.
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

/// Puts `httpGet` where `handler` stands.
fn replace(fields: &mut Map<String, Value>, handler: &str, http_get: Value) {
    if handler != "httpGet" {
        fields.shift_remove("httpGet");
    }
    let index = fields.keys().position(|key| key == handler).unwrap_or(0);
    fields.shift_remove(handler);
    fields.shift_insert(index, "httpGet".to_owned(), http_get);
}
