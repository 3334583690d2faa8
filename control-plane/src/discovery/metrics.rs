//! Prometheus metrics of the discovery server. Each label has a fixed set of values; values sent by
//! peers never become labels.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use discovery::message::TypeUrl;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Kind {
    kind: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct State {
    state: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Result {
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Type {
    r#type: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Reason {
    reason: &'static str,
}

/// Kind of peer at the other end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// An app-health agent.
    AppHealth,
    /// A peer that names a group or an entry and sends only Istio's health reports.
    Plain,
    /// A client that only subscribes to resources.
    Client,
}

/// Result of a health report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportResult {
    /// The report changed the entry.
    Applied,
    /// The report repeated the known state.
    Repeated,
    /// The report is older than the known state.
    Stale,
    /// The stream has no entry to report on.
    Refused,
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
    streams: Family<Kind, Gauge>,
    entries: Family<State, Gauge>,
    reports: Family<Result, Counter>,
    report_to_push: Histogram,
    pushes: Family<Type, Counter>,
    nacks: Family<Type, Counter>,
    store_commit: Histogram,
    store_errors: Counter,
    config_errors: Gauge,
    refused: Family<Reason, Counter>,
    peer_address_mismatches: Counter,
    silent: Counter,
    takeovers: Counter,
    last_endpoint_kept: Gauge,
    startup_grace: Gauge,
    slow_readers: Counter,
    unknown_types: Counter,
    tls_reloads: Family<Result, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        let seconds = || Histogram::new([0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0]);
        let mut metrics = Self {
            registry: Registry::with_prefix("app_health_discovery"),
            streams: Family::default(),
            entries: Family::default(),
            reports: Family::default(),
            report_to_push: seconds(),
            pushes: Family::default(),
            nacks: Family::default(),
            store_commit: seconds(),
            store_errors: Counter::default(),
            config_errors: Gauge::default(),
            refused: Family::default(),
            peer_address_mismatches: Counter::default(),
            silent: Counter::default(),
            takeovers: Counter::default(),
            last_endpoint_kept: Gauge::default(),
            startup_grace: Gauge::default(),
            slow_readers: Counter::default(),
            unknown_types: Counter::default(),
            tls_reloads: Family::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        let it = &mut self.registry;
        it.register("streams", "Number of open streams", self.streams.clone());
        it.register(
            "entries",
            "Number of workload entries by the status of their Healthy condition",
            self.entries.clone(),
        );
        it.register("reports", "Health reports received, by result", self.reports.clone());
        it.register(
            "report_to_push_seconds",
            "Seconds from a change to the snapshot that contains it",
            self.report_to_push.clone(),
        );
        it.register("pushes", "Discovery responses sent, by type", self.pushes.clone());
        it.register("nacks", "Discovery responses rejected by clients, by type", self.nacks.clone());
        it.register(
            "store_commit_seconds",
            "Duration of a commit to the store in seconds",
            self.store_commit.clone(),
        );
        it.register("store_errors", "Failed commits to the store", self.store_errors.clone());
        it.register("config_errors", "Current number of configuration errors", self.config_errors.clone());
        it.register("refused", "Connections, streams and requests rejected, by reason", self.refused.clone());
        it.register(
            "peer_address_mismatches",
            "Streams accepted although the peer address is not the entry's address (--peer-address-check warn)",
            self.peer_address_mismatches.clone(),
        );
        it.register("silent", "Entries whose agent stopped reporting", self.silent.clone());
        it.register(
            "takeovers",
            "Reporting streams replaced by a newer stream while open",
            self.takeovers.clone(),
        );
        it.register(
            "last_endpoint_kept",
            "Unhealthy entries kept as the last endpoint of a service",
            self.last_endpoint_kept.clone(),
        );
        it.register(
            "startup_grace",
            "1 while agents may still reconnect after a start with an empty store",
            self.startup_grace.clone(),
        );
        it.register(
            "slow_readers",
            "Streams closed because the client did not read",
            self.slow_readers.clone(),
        );
        it.register(
            "unknown_type_requests",
            "Requests for unsupported resource types",
            self.unknown_types.clone(),
        );
        it.register("tls_reloads", "Reloads of the TLS certificate, by result", self.tls_reloads.clone());
    }

    /// Counts an opened stream. [`Metrics::stream_closed`] must follow.
    pub fn stream_opened(&self, kind: StreamKind) {
        self.streams.get_or_create(&Kind { kind: kind.word() }).inc();
    }

    /// Counts a closed stream.
    pub fn stream_closed(&self, kind: StreamKind) {
        self.streams.get_or_create(&Kind { kind: kind.word() }).dec();
    }

    /// Sets the number of entries of a status: `True`, `False`, `Unknown` or `none`.
    pub fn entries(&self, state: &'static str, number: usize) {
        self.entries.get_or_create(&State { state }).set(i64::try_from(number).unwrap_or(i64::MAX));
    }

    /// Counts a health report.
    pub fn report(&self, result: ReportResult) {
        self.reports.get_or_create(&Result { result: result.word() }).inc();
    }

    /// Observes the seconds between a change and the snapshot that contains it.
    pub fn pushed_report(&self, seconds: f64) {
        self.report_to_push.observe(seconds);
    }

    /// Counts a response to a client.
    pub fn pushed(&self, type_url: &TypeUrl) {
        self.pushes.get_or_create(&Type { r#type: type_url.short_name() }).inc();
    }

    /// Counts a response that a client rejected.
    pub fn nacked(&self, type_url: &TypeUrl) {
        self.nacks.get_or_create(&Type { r#type: type_url.short_name() }).inc();
    }

    /// Observes the duration of a commit in seconds, and counts it if it failed.
    pub fn committed(&self, seconds: f64, worked: bool) {
        self.store_commit.observe(seconds);
        if !worked {
            self.store_errors.inc();
        }
    }

    /// Sets the number of configuration errors.
    pub fn config_errors(&self, number: usize) {
        self.config_errors.set(i64::try_from(number).unwrap_or(i64::MAX));
    }

    /// Counts a rejected connection, stream or request.
    pub fn refused(&self, reason: RefusedReason) {
        self.refused.get_or_create(&Reason { reason: reason.word() }).inc();
    }

    /// Counts a stream that was accepted although its peer address is not the entry's.
    pub fn peer_address_mismatch(&self) {
        self.peer_address_mismatches.inc();
    }

    /// Counts an agent that stopped reporting.
    pub fn silent(&self) {
        self.silent.inc();
    }

    /// Counts a reporting stream that was replaced by a newer one.
    pub fn takeover(&self) {
        self.takeovers.inc();
    }

    /// Sets the number of entries that are kept as the last endpoint.
    pub fn last_endpoint_kept(&self, number: usize) {
        self.last_endpoint_kept.set(i64::try_from(number).unwrap_or(i64::MAX));
    }

    /// Sets whether the server waits for agents to reconnect after a start with an empty store.
    pub fn startup_grace(&self, startup_grace: bool) {
        self.startup_grace.set(startup_grace.into());
    }

    /// Counts a stream that was closed because the client did not read.
    pub fn slow_reader(&self) {
        self.slow_readers.inc();
    }

    /// Counts a request for an unsupported resource type.
    pub fn unknown_type(&self) {
        self.unknown_types.inc();
    }

    /// Counts a reload of the TLS certificate.
    pub fn tls_reloaded(&self, worked: bool) {
        let result = if worked { "success" } else { "failure" };
        self.tls_reloads.get_or_create(&Result { result }).inc();
    }

    /// Returns all metrics in the OpenMetrics text format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string does not fail");
        text
    }
}

impl StreamKind {
    fn word(self) -> &'static str {
        match self {
            Self::AppHealth => "app_health",
            Self::Plain => "plain",
            Self::Client => "client",
        }
    }
}

impl ReportResult {
    fn word(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Repeated => "repeated",
            Self::Stale => "stale",
            Self::Refused => "refused",
        }
    }
}

impl RefusedReason {
    fn word(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Identity => "identity",
            Self::Permission => "permission",
            Self::Limit => "limit",
            Self::Malformed => "malformed",
        }
    }
}
