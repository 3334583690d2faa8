//! Istio's description of metrics targets, which its injector sets in the environment.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The value of `ISTIO_PROMETHEUS_ANNOTATIONS`. Istio writes all fields as strings; numbers, booleans
/// and null are accepted too.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PrometheusAnnotations {
    /// `false` disables all targets.
    #[serde(deserialize_with = "text")]
    pub(super) scrape: String,
    /// Defaults to 80 if empty.
    #[serde(deserialize_with = "text")]
    pub(super) port: String,
    /// Defaults to `/metrics` if empty.
    #[serde(deserialize_with = "text")]
    pub(super) path: String,
    /// Additional targets.
    pub(super) targets: Option<Vec<PrometheusTarget>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PrometheusTarget {
    /// Defaults to 80 if empty.
    #[serde(deserialize_with = "text")]
    pub(super) port: String,
    /// Defaults to `/metrics` if empty.
    #[serde(deserialize_with = "text")]
    pub(super) path: String,
}

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(text) => Ok(text),
        Value::Null => Ok(String::new()),
        scalar @ (Value::Number(_) | Value::Bool(_)) => Ok(scalar.to_string()),
        _ => Err(serde::de::Error::custom("expected a string, a number or a boolean")),
    }
}

impl PrometheusAnnotations {
    /// Returns the targets as pairs of port and path, with defaults applied but not validated.
    pub(super) fn targets(self) -> Vec<(String, String)> {
        if self.scrape.trim() == "false" {
            return Vec::new();
        }
        let more = self.targets.unwrap_or_default().into_iter().map(|target| (target.port, target.path));
        let port = |text: &str| if text.is_empty() { "80".to_owned() } else { text.to_owned() };
        // Like Istio, a path gets the slash that it lacks.
        let path = |text: &str| match text {
            "" => "/metrics".to_owned(),
            text if text.starts_with('/') => text.to_owned(),
            text => format!("/{text}"),
        };
        let first = std::iter::once((self.port, self.path));
        first.chain(more).map(|(number, text)| (port(number.trim()), path(text.trim()))).collect()
    }
}

#[cfg(test)]
mod tests;
