//! Prometheus metrics of the discovery server. Each label has a fixed set of values; values sent by
//! peers never become labels.

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

use discovery::entries::ReportOutcome;
use discovery::message::TypeUrl;
use serving::http_server::ServerMetrics;

/// Name and value of the only label of a family.
type Label = [(&'static str, &'static str); 1];

/// Kind of peer at the other end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// An app-health agent.
    AppHealth,
    /// A peer that names a group or an entry and sends only Istio's health reports.
    Istio,
    /// A client that only subscribes to resources.
    Client,
}

/// Reason why a connection, stream or request was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedReason {
    /// The TLS handshake failed or timed out.
    Handshake,
    /// The certificate carries no accepted identity, or has expired.
    Identity,
    /// Namespace, service account or address do not match the entry.
    Permission,
    /// A limit on number, rate or size was exceeded.
    Limit,
    /// The request violates the protocol.
    Malformed,
}

/// The metrics and their Prometheus registry.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    streams: Family<Label, Gauge>,
    entries: Family<Label, Gauge>,
    reports: Family<Label, Counter>,
    pub push_latency: Histogram,
    pushes: Family<Label, Counter>,
    nacks: Family<Label, Counter>,
    store_commit: Histogram,
    store_errors: Counter,
    pub config_errors: Gauge,
    refused: Family<Label, Counter>,
    pub peer_address_mismatches: Counter,
    pub silent_agents: Counter,
    pub reporters_replaced: Counter,
    pub last_endpoint_preserved: Gauge,
    pub self_preserved: Gauge,
    pub panic_threshold: Gauge,
    pub startup_grace: Gauge,
    pub slow_readers: Counter,
    pub connection_limit_reached: Counter,
    pub unknown_types: Counter,
    tls_reloads: Family<Label, Counter>,
    /// Metrics of the monitoring port.
    pub servers: ServerMetrics,
}

impl Default for Metrics {
    fn default() -> Self {
        let seconds = || Histogram::new([0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0]);
        let mut registry = Registry::with_prefix("app_health_discovery");
        let it = &mut registry;
        Self {
            servers: ServerMetrics::registered(it),
            streams: add(it, "streams", "Number of open streams", Family::default()),
            entries: add(
                it,
                "entries",
                "Number of workload entries by the status of their Healthy condition",
                Family::default(),
            ),
            reports: add(it, "reports", "Health reports received, by result", Family::default()),
            push_latency: add(
                it,
                "push_latency_seconds",
                "Seconds from a change to the snapshot that contains it",
                seconds(),
            ),
            pushes: add(it, "pushes", "Discovery responses sent, by type", Family::default()),
            nacks: add(it, "nacks", "Discovery responses rejected by clients, by type", Family::default()),
            store_commit: add(
                it,
                "store_commit_seconds",
                "Duration of a commit to the store in seconds",
                seconds(),
            ),
            store_errors: add(it, "store_errors", "Failed commits to the store", Counter::default()),
            config_errors: add(
                it,
                "config_errors",
                "Current number of configuration errors",
                Gauge::default(),
            ),
            refused: add(
                it,
                "refused",
                "Connections, streams and requests rejected, by reason",
                Family::default(),
            ),
            peer_address_mismatches: add(
                it,
                "peer_address_mismatches",
                "Streams accepted although the peer address is not the entry's address (--peer-address-check warn)",
                Counter::default(),
            ),
            silent_agents: add(
                it,
                "silent_agents",
                "Entries whose agent stopped reporting",
                Counter::default(),
            ),
            reporters_replaced: add(
                it,
                "reporters_replaced",
                "Reporting streams replaced by a newer stream while open",
                Counter::default(),
            ),
            last_endpoint_preserved: add(
                it,
                "last_endpoint_preserved",
                "Unhealthy entries preserved as the last endpoint of a service (--last-endpoint)",
                Gauge::default(),
            ),
            self_preserved: add(
                it,
                "self_preserved_endpoints",
                "Silent entries preserved as endpoints by self-preservation (--max-silent-percent)",
                Gauge::default(),
            ),
            panic_threshold: add(
                it,
                "panic_threshold_endpoints",
                "Unhealthy entries preserved as endpoints by the panic threshold (--max-unhealthy-percent)",
                Gauge::default(),
            ),
            startup_grace: add(
                it,
                "startup_grace",
                "1 while agents may still reconnect after a start with an empty store",
                Gauge::default(),
            ),
            slow_readers: add(
                it,
                "slow_readers",
                "Streams closed because the client did not read",
                Counter::default(),
            ),
            connection_limit_reached: add(
                it,
                "connection_limit_reached",
                "New connections that found all in use (--max-streams)",
                Counter::default(),
            ),
            unknown_types: add(
                it,
                "unknown_type_requests",
                "Resource types that are not served, requested on a stream for the first time",
                Counter::default(),
            ),
            tls_reloads: add(
                it,
                "tls_reloads",
                "Reloads of the TLS certificate, by result",
                Family::default(),
            ),
            registry,
        }
    }
}

fn add<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

/// Sets a gauge to a number of objects.
pub fn set(gauge: &Gauge, number: usize) {
    gauge.set(i64::try_from(number).unwrap_or(i64::MAX));
}

impl Metrics {
    /// Counts an opened stream. [`Metrics::stream_closed`] must follow.
    pub fn stream_opened(&self, kind: StreamKind) {
        self.streams.get_or_create(&kind.label()).inc();
    }

    /// Counts a closed stream.
    pub fn stream_closed(&self, kind: StreamKind) {
        self.streams.get_or_create(&kind.label()).dec();
    }

    /// Sets the number of entries of a status: `True`, `False`, `Unknown` or `none`.
    pub fn entries(&self, state: &'static str, number: usize) {
        set(&self.entries.get_or_create(&[("state", state)]), number);
    }

    /// Counts a health report.
    pub fn report(&self, outcome: ReportOutcome) {
        let result = match outcome {
            ReportOutcome::Applied => "applied",
            ReportOutcome::Repeated => "repeated",
            ReportOutcome::Stale => "stale",
            ReportOutcome::Rejected => "refused",
        };
        self.reports.get_or_create(&[("result", result)]).inc();
    }

    /// Counts a response to a client.
    pub fn pushed(&self, type_url: &TypeUrl) {
        self.pushes.get_or_create(&[("type", type_url.short_name())]).inc();
    }

    /// Counts a response that a client rejected.
    pub fn nacked(&self, type_url: &TypeUrl) {
        self.nacks.get_or_create(&[("type", type_url.short_name())]).inc();
    }

    /// Observes the duration of a commit in seconds, and counts it if it failed.
    pub fn committed(&self, seconds: f64, worked: bool) {
        self.store_commit.observe(seconds);
        if !worked {
            self.store_errors.inc();
        }
    }

    /// Counts a rejected connection, stream or request.
    pub fn refused(&self, reason: RefusedReason) {
        let reason = match reason {
            RefusedReason::Handshake => "handshake",
            RefusedReason::Identity => "identity",
            RefusedReason::Permission => "permission",
            RefusedReason::Limit => "limit",
            RefusedReason::Malformed => "malformed",
        };
        self.refused.get_or_create(&[("reason", reason)]).inc();
    }

    /// Counts a reload of the TLS certificate.
    pub fn tls_reloaded(&self, worked: bool) {
        let result = if worked { "success" } else { "failure" };
        self.tls_reloads.get_or_create(&[("result", result)]).inc();
    }

    /// Returns all metrics in the OpenMetrics text format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string does not fail");
        text
    }
}

impl StreamKind {
    fn label(self) -> Label {
        let kind = match self {
            Self::AppHealth => "app_health",
            Self::Istio => "istio",
            Self::Client => "client",
        };
        [("kind", kind)]
    }
}
