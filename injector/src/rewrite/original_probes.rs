//! The annotation with the original probes. It documents them for readers, and allows the injector
//! to restore lost entries. It is part of the Pod, so its content is validated like
//! any other probe.

use serde_json::{Map, Value};

use crate::{ORIGINAL_PROBES_ANNOTATION, pod};

/// The original probes by container and field.
#[derive(Debug)]
pub(super) struct OriginalProbes {
    containers: Map<String, Value>,
    changed: bool,
}

impl OriginalProbes {
    /// Reads the annotation; malformed content counts as absent.
    pub(super) fn read(pod: &Value) -> Self {
        let text = pod::annotation(pod, ORIGINAL_PROBES_ANNOTATION).and_then(Value::as_str);
        let containers = text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        Self { containers, changed: false }
    }

    pub(super) fn get(&self, container: &str, field: &str) -> Option<&Value> {
        self.containers.get(container)?.get(field)
    }

    /// Records the original of a probe and replaces an older one.
    pub(super) fn insert(&mut self, container: &str, field: &str, probe: Value) {
        self.changed = true;
        let fields = self.containers.entry(container).or_insert_with(|| Value::Object(Map::new()));
        if !fields.is_object() {
            *fields = Value::Object(Map::new());
        }
        fields[field] = probe;
    }

    /// Writes the annotation if a probe was recorded.
    pub(super) fn write(self, pod: &mut Value) {
        if self.changed {
            pod::annotate(pod, ORIGINAL_PROBES_ANNOTATION, Value::Object(self.containers).to_string());
        }
    }
}
