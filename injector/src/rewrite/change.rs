//! A planned change of one probe or hook.

use probe::{HandlerKind, ProbeKind};
use serde_json::{Map, Value};

use super::handler;
use super::original_probes::OriginalProbes;

/// The location of a probe or hook in the Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProbeLocation {
    pub list: &'static str,
    /// The index of the container in the list.
    pub index: usize,
    pub container: String,
    pub kind: ProbeKind,
}

/// The change of the probe or hook itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HandlerEdit {
    /// The probe is correct; only its entry was missing.
    Keep,
    /// The handler is replaced by a request to `key`. Hooks have no `timeout`.
    Replace { handler: HandlerKind, key: String, timeout: Option<Value> },
    /// The port is replaced by the status port.
    SetPort,
}

/// A planned change of one probe or hook and of its entry in the declared probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub location: ProbeLocation,
    pub edit: HandlerEdit,
    /// The key and text of the new entry.
    pub entry: Option<(String, String)>,
}

impl Change {
    pub(crate) fn apply(self, spec: &mut Value, status_port: u16, originals: &mut OriginalProbes) {
        let ProbeLocation { list, index, container, kind } = self.location;
        let parent = &mut spec[list][index];
        let parent = if kind.is_hook() { &mut parent["lifecycle"] } else { parent };
        let value = &mut parent[kind.field()];
        match self.edit {
            HandlerEdit::Keep => {}
            HandlerEdit::SetPort => value["httpGet"]["port"] = status_port.into(),
            HandlerEdit::Replace { handler, key, timeout } => {
                originals.insert(&container, kind.field(), value.clone());
                if let Some(fields) = value.as_object_mut() {
                    replace(fields, handler.name(), handler::replacement(&key, status_port));
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
