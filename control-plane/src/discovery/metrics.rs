//! What discovery counts. Every label has a closed set of values: nothing of a peer becomes a series.

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

/// Who is at the other end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// Our agent.
    AppHealth,
    /// Names a group or an entry, and speaks only Istio's words.
    Plain,
    /// Only reads.
    Client,
}

/// What became of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportResult {
    /// It changed what is known.
    Applied,
    /// It said the same again.
    Repeated,
    /// It was older than what is known.
    Stale,
    /// Its sender may not report that.
    Refused,
}

/// Why a connection, stream or request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedReason {
    /// The handshake failed, or took too long.
    Handshake,
    /// The certificate names nobody, or is no longer valid.
    Identity,
    /// Namespace, service account or address do not fit.
    Permission,
    /// Too many, too often, too large.
    Limit,
    /// Not as the protocol has it.
    Malformed,
}

/// The registry and what is in it.
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
    settling: Gauge,
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
            settling: Gauge::default(),
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
        it.register("streams", "Open streams", self.streams.clone());
        it.register("entries", "Entries by the status of their condition", self.entries.clone());
        it.register("reports", "Reports by what became of them", self.reports.clone());
        it.register(
            "report_to_push_seconds",
            "From a report to the snapshot that shows it",
            self.report_to_push.clone(),
        );
        it.register("pushes", "Answers to clients", self.pushes.clone());
        it.register("nacks", "Answers that clients refused", self.nacks.clone());
        it.register("store_commit_seconds", "Time of a commit", self.store_commit.clone());
        it.register("store_errors", "Commits that failed", self.store_errors.clone());
        it.register("config_errors", "Errors in the configuration now", self.config_errors.clone());
        it.register("refused", "Connections, streams and requests refused", self.refused.clone());
        it.register(
            "peer_address_mismatches",
            "Streams from another address than their entry's, let in by --peer-address-check warn",
            self.peer_address_mismatches.clone(),
        );
        it.register("silent", "Agents that fell silent", self.silent.clone());
        it.register(
            "takeovers",
            "Entries whose reporter was replaced while it lived",
            self.takeovers.clone(),
        );
        it.register(
            "last_endpoint_kept",
            "Unhealthy entries kept as the last",
            self.last_endpoint_kept.clone(),
        );
        it.register("settling", "1 after a start, until the absent are missed", self.settling.clone());
        it.register("slow_readers", "Streams closed because nobody read them", self.slow_readers.clone());
        it.register("unknown_type_requests", "Requests for what is not served", self.unknown_types.clone());
        it.register("tls_reloads", "Certificates that were read again", self.tls_reloads.clone());
    }

    /// A stream begins; [`Metrics::stream_closed`] ends it.
    pub fn stream_opened(&self, kind: StreamKind) {
        self.streams.get_or_create(&Kind { kind: kind.word() }).inc();
    }

    /// A stream ended.
    pub fn stream_closed(&self, kind: StreamKind) {
        self.streams.get_or_create(&Kind { kind: kind.word() }).dec();
    }

    /// So many entries have this status: `True`, `False`, `Unknown`, `none`.
    pub fn entries(&self, state: &'static str, number: usize) {
        self.entries.get_or_create(&State { state }).set(i64::try_from(number).unwrap_or(i64::MAX));
    }

    /// A report was judged.
    pub fn report(&self, result: ReportResult) {
        self.reports.get_or_create(&Result { result: result.word() }).inc();
    }

    /// A snapshot shows a report that came so long ago.
    pub fn pushed_report(&self, seconds: f64) {
        self.report_to_push.observe(seconds);
    }

    /// A client was sent something.
    pub fn pushed(&self, type_url: &TypeUrl) {
        self.pushes.get_or_create(&Type { r#type: type_url.word() }).inc();
    }

    /// A client refused something.
    pub fn nacked(&self, type_url: &TypeUrl) {
        self.nacks.get_or_create(&Type { r#type: type_url.word() }).inc();
    }

    /// A commit took so long, or failed.
    pub fn committed(&self, seconds: f64, worked: bool) {
        self.store_commit.observe(seconds);
        if !worked {
            self.store_errors.inc();
        }
    }

    /// So many errors are in the configuration.
    pub fn config_errors(&self, number: usize) {
        self.config_errors.set(i64::try_from(number).unwrap_or(i64::MAX));
    }

    /// Something was refused.
    pub fn refused(&self, reason: RefusedReason) {
        self.refused.get_or_create(&Reason { reason: reason.word() }).inc();
    }

    /// A stream came from another address than its entry's, and was let in.
    pub fn peer_address_mismatch(&self) {
        self.peer_address_mismatches.inc();
    }

    /// An agent fell silent.
    pub fn silent(&self) {
        self.silent.inc();
    }

    /// A reporter was replaced.
    pub fn takeover(&self) {
        self.takeovers.inc();
    }

    /// So many entries stay as the last endpoint.
    pub fn last_endpoint_kept(&self, number: usize) {
        self.last_endpoint_kept.set(i64::try_from(number).unwrap_or(i64::MAX));
    }

    /// Whether the absent are not missed yet.
    pub fn settling(&self, settling: bool) {
        self.settling.set(settling.into());
    }

    /// A stream was closed because nobody read it.
    pub fn slow_reader(&self) {
        self.slow_readers.inc();
    }

    /// A request for what is not served.
    pub fn unknown_type(&self) {
        self.unknown_types.inc();
    }

    /// The certificate's files had changed.
    pub fn tls_reloaded(&self, worked: bool) {
        let result = if worked { "success" } else { "failure" };
        self.tls_reloads.get_or_create(&Result { result }).inc();
    }

    /// Everything in OpenMetrics' text form.
    pub fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("a string takes everything");
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
