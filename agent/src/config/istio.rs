//! Parsers for the values that Istio's injector and proxy configuration set in the environment.

use std::time::Duration;

use serde::Deserialize;

/// Parses a non-negative duration in Go's syntax, for example `5s`, `1m30s`, `500ms` or `1.5h`.
pub(super) fn go_duration(text: &str) -> Option<Duration> {
    if text.is_empty() || text == "0" {
        return (!text.is_empty()).then_some(Duration::ZERO);
    }
    let is_number = |char: char| char.is_ascii_digit() || char == '.';
    let mut total = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|char| !is_number(char))?);
        let (unit, next) = after.split_at(after.find(is_number).unwrap_or(after.len()));
        let seconds = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        total += number.parse::<f64>().ok()? * seconds;
        rest = next;
    }
    Duration::try_from_secs_f64(total).ok()
}

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
    pub(super) fn pairs(self) -> Vec<(String, String)> {
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
