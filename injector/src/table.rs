//! The prober table as the text that it is: entries that are not ours keep their bytes.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::warning;

/// The longest value, in bytes: at 128 KiB the kernel refuses to start the sidecar.
pub(super) const LIMIT: usize = 120 << 10;
/// Stands for the Pod's address, which nobody knows yet.
const ANY_POD: &str = "192.0.2.1";

/// The table by its keys, each entry as compact JSON or as it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Table(BTreeMap<String, String>);

impl Table {
    /// Reads a value of the variable; refused, with the words of `probe`, where the filter would refuse it.
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

    /// Adds an entry, or replaces the one of the same key.
    pub(super) fn insert(&mut self, key: String, entry: String) {
        self.0.insert(key, entry);
    }

    /// Compact JSON, keys in byte order.
    pub(super) fn text(&self) -> String {
        let pairs = self.0.iter().map(|(key, entry)| format!("{}:{entry}", Value::from(key.as_str())));
        format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
    }
}

/// An entry as it is written, if the filter takes it; otherwise the words of `probe`. kubelet expands `$(NAME)` and `$$` in the
/// variable's value, so there is no `$` in it.
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
