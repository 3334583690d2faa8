//! Metrics of the HTTP servers of a process. Every label has a fixed set of values, so that clients
//! cannot create series.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

type Labels<const N: usize> = [(&'static str, String); N];

/// Clones share their numbers.
#[derive(Clone, Debug, Default)]
pub struct ServerMetrics {
    requests: Family<Labels<3>, Counter>,
    connections_closed: Family<Labels<2>, Counter>,
    connections: Family<Labels<1>, Gauge>,
}

impl ServerMetrics {
    /// Creates the metrics and registers them.
    pub fn registered(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register("requests", "Requests that were answered", metrics.requests.clone());
        let closed = "Connections that were closed before a response was sent, or before it was read";
        registry.register("connections_closed", closed, metrics.connections_closed.clone());
        registry.register("connections", "Open connections", metrics.connections.clone());
        metrics
    }

    /// Records a response; `path` is one of the server's paths or `other`.
    pub fn request(&self, server: &'static str, path: &'static str, code: u16) {
        let labels = [("server", server.to_owned()), ("path", path.to_owned()), ("code", code.to_string())];
        self.requests.get_or_create(&labels).inc();
    }

    /// Records a connection that was closed early; the reason is `evicted`, `head_timeout`,
    /// `write_timeout`, `full`, `rate` or `forbidden`.
    pub fn connection_closed(&self, server: &'static str, reason: &'static str) {
        let labels = [("server", server.to_owned()), ("reason", reason.to_owned())];
        self.connections_closed.get_or_create(&labels).inc();
    }

    /// Counts an open connection until the result is dropped.
    pub fn connection(&self, server: &'static str) -> GaugeGuard {
        GaugeGuard::new(self.connections.get_or_create_owned(&[("server", server.to_owned())]))
    }
}

/// Guard that increments a gauge during its lifetime.
#[derive(Debug)]
pub struct GaugeGuard(Gauge);

impl GaugeGuard {
    pub fn new(gauge: Gauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}
