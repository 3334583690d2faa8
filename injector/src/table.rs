//! The declared probes as the JSON text of the environment variable. Existing entries keep their
//! bytes.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::warning;

/// The maximum length of the value in bytes. From 128 KiB on (`MAX_ARG_STRLEN`), the kernel refuses
/// to start the sidecar.
pub(super) const LIMIT: usize = 120 << 10;
/// A placeholder for the Pod's IP address, which is unknown before the Pod is scheduled
/// (TEST-NET-1, RFC 5737).
const ANY_POD: &str = "192.0.2.1";

/// The entries by key, each as JSON text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Table(BTreeMap<String, String>);

impl Table {
    /// Parses the value of the variable. A value that the filter would reject is an error with the
    /// text of `probe`.
    pub(super) fn read(text: &str, status_port: u16) -> Result<Self, String> {
        accept(&Value::from(text), status_port).map_err(|error| warning::of_probe(&error, ""))?;
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
pub(super) fn entry(key: &str, value: &Value, status_port: u16) -> Result<String, String> {
    accept(&json!({ key: value }), status_port).map_err(|error| warning::of_probe(&error, key))?;
    Ok(value.to_string().replace('$', "\\u0024"))
}

fn accept(probers: &Value, status_port: u16) -> Result<(), probe::ConfigError> {
    let configuration = json!({"podIP": ANY_POD, "statusPort": status_port, "probers": probers});
    probe::PluginConfig::parse(configuration.to_string().as_bytes()).map(|_| ())
}

#[cfg(test)]
mod tests;
