//! Istio's description of metrics targets, which its injector sets in the environment.

use serde::Deserialize;

/// The value of `ISTIO_PROMETHEUS_ANNOTATIONS`; all fields are strings.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PrometheusAnnotations {
    /// `false` disables all targets.
    pub(super) scrape: String,
    /// Defaults to 80 if empty.
    pub(super) port: String,
    /// Defaults to `/metrics` if empty.
    pub(super) path: String,
    /// Additional targets.
    pub(super) targets: Vec<PrometheusTarget>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PrometheusTarget {
    /// Defaults to 80 if empty.
    pub(super) port: String,
    /// Defaults to `/metrics` if empty.
    pub(super) path: String,
}

impl PrometheusAnnotations {
    /// Returns the targets as pairs of port and path, with defaults applied but not validated.
    pub(super) fn targets(self) -> Vec<(String, String)> {
        if self.scrape == "false" {
            return Vec::new();
        }
        let more = self.targets.into_iter().map(|target| (target.port, target.path));
        let named = |text: String, default: &str| if text.is_empty() { default.to_owned() } else { text };
        let first = std::iter::once((self.port, self.path));
        first.chain(more).map(|(port, path)| (named(port, "80"), named(path, "/metrics"))).collect()
    }
}

#[cfg(test)]
mod tests;
