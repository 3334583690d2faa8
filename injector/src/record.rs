//! The annotation that keeps each probe as it was: for people, and to heal a table that got lost. It is data of the Pod, so it is
//! never trusted: what comes from it is checked like anything else.

use serde_json::{Map, Value};

use crate::{ORIGINAL_PROBES, pod};

/// Container, field, probe.
#[derive(Debug)]
pub(super) struct Record {
    containers: Map<String, Value>,
    changed: bool,
}

impl Record {
    /// Reads it; what is no record counts as none.
    pub(super) fn read(of: &Value) -> Self {
        let text = pod::annotation(of, ORIGINAL_PROBES).and_then(Value::as_str);
        let containers = text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        Self { containers, changed: false }
    }

    /// A probe as it was.
    pub(super) fn original(&self, container: &str, field: &str) -> Option<&Value> {
        self.containers.get(container)?.get(field)
    }

    /// Keeps a probe; it replaces an older one.
    pub(super) fn insert(&mut self, container: &str, field: &str, probe: Value) {
        self.changed = true;
        let fields = self.containers.entry(container).or_insert_with(|| Value::Object(Map::new()));
        if !fields.is_object() {
            *fields = Value::Object(Map::new());
        }
        fields[field] = probe;
    }

    /// Writes it if something was kept.
    pub(super) fn write(self, of: &mut Value) {
        if self.changed {
            pod::annotate(of, ORIGINAL_PROBES, Value::Object(self.containers).to_string());
        }
    }
}
