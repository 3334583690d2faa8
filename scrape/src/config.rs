//! Which metrics are merged.

/// Which metrics `GET /stats/prometheus` returns, in addition to the agent's own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetricsConfig {
    /// True if Envoy's metrics are included.
    pub envoy: bool,
    /// Metrics endpoints of the application, in order.
    pub targets: Vec<Target>,
    /// True if a label tells the series of the targets apart.
    pub labels_targets: bool,
    /// Settings that were ignored at least in part, for the gauge `config_rejected`.
    pub rejected: Vec<&'static str>,
}

/// A metrics endpoint of the application on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// 1 to 65535, and not a port of the proxy.
    pub port: u16,
    /// Path and query, with a leading slash.
    pub path: String,
}

impl MetricsConfig {
    /// Records that at least a part of the setting `key` was ignored.
    pub fn mark_rejected(&mut self, key: &'static str) {
        if !self.rejected.contains(&key) {
            self.rejected.push(key);
        }
    }
}
