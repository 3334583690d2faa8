//! The agent's metrics. Every label has a fixed set of values, so that clients cannot create
//! series.

pub mod families;
pub mod format;
pub mod health;
pub mod labels;
pub mod line;
pub mod merge;
mod number;
mod process;
mod reports;
pub mod scrape;

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::envoy::process::Ended;
use crate::metrics::health::HealthMetrics;
use crate::readiness::{Failure, Phase, Snapshot};
use reports::Reports;

type Labels<const N: usize> = [(&'static str, String); N];
type Counters<const N: usize> = Family<Labels<N>, Counter>;
type Gauges<const N: usize> = Family<Labels<N>, Gauge>;
type Seconds = Gauge<f64, AtomicU64>;
type Histograms = Family<Labels<1>, Histogram, fn() -> Histogram>;

/// Prefix of all metric names.
const PREFIX: &str = "app_health_agent";
/// Upper bounds of the histogram buckets for admin requests, in seconds.
const ADMIN_SECONDS: [f64; 9] = [0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0];

#[derive(Debug)]
pub struct Metrics {
    pub health: HealthMetrics,
    registry: Registry,
    envoy_info: Gauges<1>,
    ready: Gauge,
    condition: Gauges<1>,
    startup_seconds: Seconds,
    envoy_epoch: Gauge,
    draining: Gauge,
    config_rejected: Gauges<1>,
    readiness_changes: Counters<2>,
    envoy_exits: Counters<1>,
    admin_questions: Counters<1>,
    data_path_questions: Counters<1>,
    admin_seconds: Histograms,
    requests: Counters<3>,
    connections_closed: Counters<2>,
    connections: Gauges<1>,
    held_waits: Gauge,
    scrapes: Counters<2>,
    resident_memory_bytes: Gauge,
    cpu_seconds: Counter<f64, AtomicU64>,
    open_fds: Gauge,
    pub reports: Reports,
    /// CPU time in seconds that was added to the counter so far.
    cpu_counted: Mutex<f64>,
}

/// Returns the label value for the outcome of a request.
pub fn outcome(failure: Option<Failure>) -> &'static str {
    match failure {
        None => "ok",
        Some(Failure::Refused) => "refused",
        Some(Failure::Timeout) => "timeout",
        Some(Failure::TooLarge) => "too_large",
        Some(Failure::BadStatus) => "bad_status",
        Some(Failure::BadBody) => "bad_body",
    }
}

impl Metrics {
    pub fn new() -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(ADMIN_SECONDS);
        let mut metrics = Self {
            health: HealthMetrics::default(),
            registry: Registry::with_prefix(PREFIX),
            envoy_info: Family::default(),
            ready: Gauge::default(),
            condition: Family::default(),
            startup_seconds: Seconds::default(),
            envoy_epoch: Gauge::default(),
            draining: Gauge::default(),
            config_rejected: Family::default(),
            readiness_changes: Family::default(),
            envoy_exits: Family::default(),
            admin_questions: Family::default(),
            data_path_questions: Family::default(),
            admin_seconds: Family::new_with_constructor(histogram),
            requests: Family::default(),
            connections_closed: Family::default(),
            connections: Family::default(),
            held_waits: Gauge::default(),
            scrapes: Family::default(),
            resident_memory_bytes: Gauge::default(),
            cpu_seconds: Counter::default(),
            open_fds: Gauge::default(),
            reports: Reports::default(),
            cpu_counted: Mutex::new(0.0),
        };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let build_info = Gauges::<1>::default();
        build_info.get_or_create(&[("version", env!("CARGO_PKG_VERSION").to_owned())]).set(1);
        let to = &mut self.registry;
        to.register("build_info", "Version of the agent", build_info);
        to.register("envoy_info", "Version of Envoy, once it is known", self.envoy_info.clone());
        to.register("ready", "1 if all readiness conditions are met", self.ready.clone());
        to.register("condition", "1 if this readiness condition is met", self.condition.clone());
        to.register(
            "startup_seconds",
            "Time from the agent's start to the first readiness of this Envoy process",
            self.startup_seconds.clone(),
        );
        to.register(
            "envoy_epoch",
            "Number of the current Envoy process, starting at 1",
            self.envoy_epoch.clone(),
        );
        to.register("draining", "1 during a drain", self.draining.clone());
        to.register(
            "config_rejected",
            "1 if a part of this setting was ignored because it is invalid",
            self.config_rejected.clone(),
        );
        let changes = "Changes of readiness, by the conditions that caused them";
        to.register("readiness_changes", changes, self.readiness_changes.clone());
        to.register("envoy_exits", "Exits of Envoy", self.envoy_exits.clone());
        to.register("admin_questions", "Requests to Envoy's admin interface", self.admin_questions.clone());
        to.register(
            "data_path_questions",
            "Readiness requests to the probe listener",
            self.data_path_questions.clone(),
        );
        to.register(
            "admin_seconds",
            "Duration of requests to Envoy's admin interface",
            self.admin_seconds.clone(),
        );
        to.register("requests", "Requests that were answered", self.requests.clone());
        let closed = "Connections that were closed before a response was sent, or before it was read";
        to.register("connections_closed", closed, self.connections_closed.clone());
        to.register("connections", "Open connections", self.connections.clone());
        to.register(
            "held_waits",
            "Requests that are currently held until Envoy is ready",
            self.held_waits.clone(),
        );
        to.register("scrapes", "Scrapes of the sources of merged metrics", self.scrapes.clone());
        to.register(
            "resident_memory_bytes",
            "Resident memory of this process",
            self.resident_memory_bytes.clone(),
        );
        to.register("cpu_seconds", "CPU time of this process", self.cpu_seconds.clone());
        to.register("open_fds", "Open file descriptors of this process", self.open_fds.clone());
        self.reports.register(to);
        self.health.register(to);
    }

    /// Updates the metrics from one snapshot to the next, at `now` since the agent's start.
    pub fn observe(&self, before: &Snapshot, after: &Snapshot, now: Duration) {
        self.ready.set(after.is_ready().into());
        self.envoy_epoch.set(after.epoch.into());
        self.draining.set(matches!(after.phase, Phase::Draining).into());
        // A condition that is neither pending nor met any more depends on a pending one.
        let unset = before.met.iter().map(|(met, _)| met);
        for condition in unset.chain(after.pending.iter().map(|pending| &pending.condition)) {
            self.condition.get_or_create(&[("condition", condition.name().to_owned())]).set(0);
        }
        for (met, _) in &after.met {
            self.condition.get_or_create(&[("condition", met.name().to_owned())]).set(1);
        }
        if let Some(version) = after.envoy.as_ref().filter(|version| before.envoy.as_ref() != Some(version)) {
            self.envoy_info.clear();
            self.envoy_info.get_or_create(&[("version", version.clone())]).set(1);
        }
        let (to, of) = match (before.is_ready(), after.is_ready()) {
            (false, true) => ("ready", &before.pending),
            (true, false) => ("not-ready", &after.pending),
            _ => return,
        };
        if to == "ready" && before.phase == Phase::Starting {
            self.startup_seconds.set(now.as_secs_f64());
        }
        for pending in of {
            let labels = [("to", to.to_owned()), ("condition", pending.condition.name().to_owned())];
            self.readiness_changes.get_or_create(&labels).inc();
        }
    }

    /// Records a setting of which a part was ignored.
    pub fn rejected(&self, key: &str) {
        self.config_rejected.get_or_create(&[("key", key.to_owned())]).set(1);
    }

    /// Records an exit of Envoy; `asked` means that the agent requested it.
    pub fn envoy_ended(&self, ended: Ended, asked: bool) {
        let cause = match ended {
            _ if asked => "asked",
            Ended::Code(_) => "code",
            Ended::Signal(_) | Ended::Unknown => "signal",
        };
        self.envoy_exits.get_or_create(&[("cause", cause.to_owned())]).inc();
    }

    /// Records a request to Envoy's admin interface and its duration.
    pub fn admin_question(&self, failure: Option<Failure>, took: Duration) {
        let labels = [("outcome", outcome(failure).to_owned())];
        self.admin_questions.get_or_create(&labels).inc();
        self.admin_seconds.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// Records a readiness request to the probe listener.
    pub fn data_path_question(&self, failure: Option<Failure>) {
        self.data_path_questions.get_or_create(&[("outcome", outcome(failure).to_owned())]).inc();
    }

    /// Records a response; `path` is one of the server's paths or `other`.
    pub fn request(&self, server: &'static str, path: &'static str, code: u16) {
        let labels = [("server", server.to_owned()), ("path", path.to_owned()), ("code", code.to_string())];
        self.requests.get_or_create(&labels).inc();
    }

    /// Records a connection that was closed early; the reason is `evicted`, `head_timeout`,
    /// `write_timeout` or `full`.
    pub fn connection_closed(&self, server: &'static str, reason: &'static str) {
        let labels = [("server", server.to_owned()), ("reason", reason.to_owned())];
        self.connections_closed.get_or_create(&labels).inc();
    }

    /// Counts an open connection until the result is dropped.
    pub fn connection(&self, server: &'static str) -> Counted {
        Counted::new(self.connections.get_or_create_owned(&[("server", server.to_owned())]))
    }

    /// Counts a held request until the result is dropped.
    pub fn held(&self) -> Counted {
        Counted::new(self.held_waits.clone())
    }

    /// Records the scrape of one source.
    pub fn scrape(&self, part: &'static str, outcome: &'static str) {
        self.scrapes.get_or_create(&[("part", part.to_owned()), ("outcome", outcome.to_owned())]).inc();
    }

    /// Encodes all metrics as OpenMetrics, with `# EOF` at the end.
    pub fn encode(&self) -> String {
        let usage = process::Usage::of_this();
        self.resident_memory_bytes.set(usage.resident_memory_bytes);
        self.open_fds.set(usage.open_fds);
        {
            let mut counted = self.cpu_counted.lock().expect("nothing panics while it holds this lock");
            self.cpu_seconds.inc_by((usage.cpu_seconds - *counted).max(0.0));
            *counted = usage.cpu_seconds;
        }
        self.reports.look();
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a String cannot fail");
        text
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// Guard that increments a gauge during its lifetime.
#[derive(Debug)]
pub struct Counted(Gauge);

impl Counted {
    fn new(gauge: Gauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests;
