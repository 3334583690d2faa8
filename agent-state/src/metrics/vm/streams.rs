//! Counts of xDS streams and their messages, which only Istio's names of metrics show.

use prometheus_client::metrics::counter::Counter;

#[derive(Debug, Default)]
pub struct StreamCounts {
    /// Attempts to connect to the control plane that failed.
    pub connection_failures: Counter,
    /// Streams that the control plane or the network ended.
    pub connection_terminations: Counter,
    /// Streams that Envoy ended.
    pub envoy_terminations: Counter,
    /// Requests of Envoy.
    pub requests: Counter,
    /// Responses of the control plane.
    pub responses: Counter,
}
