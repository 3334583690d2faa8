//! The declared probes as the JSON text of the environment variable. Existing entries keep their
//! bytes.

use std::collections::BTreeMap;

use probe::{AppProbers, ProxyPorts};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::warning;

/// The maximum length of the value in bytes. From 128 KiB on (`MAX_ARG_STRLEN`), the kernel refuses
/// to start the sidecar.
pub(super) const MAX_BYTES: usize = 120 << 10;

/// The entries by key, each as JSON text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ProberEntries(BTreeMap<String, String>);

impl ProberEntries {
    /// Parses the value of the variable. A value that the filter would reject is an error with the
    /// text of `probe`.
    pub(super) fn read(text: &str, status_port: u16) -> Result<Self, String> {
        validate(text, "", status_port)?;
        if matches!(text.trim_ascii(), "" | "null") {
            return Ok(Self::default());
        }
        let entries: BTreeMap<String, &RawValue> =
            serde_json::from_str(text).map_err(|error| error.to_string())?;
        Ok(Self(entries.into_iter().map(|(key, value)| (key, value.get().to_owned())).collect()))
    }

    pub(super) fn contains(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    pub(super) fn insert(&mut self, key: String, entry: String) {
        self.0.insert(key, entry);
    }

    /// Returns compact JSON with the keys in byte order.
    pub(super) fn text(&self) -> String {
        let pairs = self.0.iter().map(|(key, entry)| format!("{}:{entry}", Value::from(key.as_str())));
        format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
    }
}

/// Returns the text of an entry; an error with the text of `probe` if the filter would reject it.
/// Kubernetes expands `$(NAME)` and `$$` in the value of a variable, so every `$` is escaped.
pub(super) fn validated_entry(key: &str, value: &Value, status_port: u16) -> Result<String, String> {
    validate(&json!({ key: value }).to_string(), key, status_port)?;
    Ok(value.to_string().replace('$', "\\u0024"))
}

/// `key` is the entry's key if there is only one; error texts do not repeat it.
fn validate(text: &str, key: &str, status_port: u16) -> Result<(), String> {
    let parsed = AppProbers::parse(text, &ProxyPorts::new([status_port]), &mut Vec::new());
    parsed.map(|_| ()).map_err(|error| warning::probe_error(&error, key))
}

#[cfg(test)]
mod tests;
