//! The agent's metrics. Every label has a fixed set of values, so that clients cannot create
//! series.

mod process;
#[cfg(feature = "vm")]
pub mod vm;

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::text::{encode, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};
use serving::http_server::{GaugeGuard, ServerMetrics};

use crate::exit_reason::ExitReason;
use address::RequestFailure;
use envoy_bootstrap::filter_choice::FilterChoice;
use readiness::{Phase, Snapshot};
#[cfg(feature = "vm")]
use vm::VmMetrics;

type Labels<const N: usize> = [(&'static str, String); N];
type Counters<const N: usize> = Family<Labels<N>, Counter>;
type Gauges<const N: usize> = Family<Labels<N>, Gauge>;
type Seconds = Gauge<f64, AtomicU64>;
type Histograms = Family<Labels<1>, Histogram, fn() -> Histogram>;

const PREFIX: &str = "app_health_agent";
/// Upper bounds of the histogram buckets for admin requests, in seconds.
const ADMIN_BUCKETS: [f64; 9] = [0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0];

/// The cause of an exit of Envoy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitCause {
    /// The agent stopped it.
    Requested,
    /// The agent killed it because it did not respond.
    Hung,
    Unexpected(ExitReason),
}

impl fmt::Display for ExitCause {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Requested => formatter.write_str("stopped by the agent"),
            Self::Hung => formatter.write_str("killed by the agent, because it did not respond"),
            Self::Unexpected(reason) => write!(formatter, "unexpectedly, {reason}"),
        }
    }
}

/// Counts of merged scrapes.
#[derive(Debug, Default)]
pub struct ScrapeCounts {
    pub total: Counter,
    pub envoy_failures: Counter,
    pub application_failures: Counter,
}

#[derive(Debug)]
pub struct Metrics {
    #[cfg(feature = "vm")]
    pub vm: VmMetrics,
    registry: Registry,
    /// Metrics of other parts, under names of their own.
    others: Mutex<Vec<Registry>>,
    /// Counts of `GET /stats/prometheus`, which only Istio's names of metrics show.
    pub scraped: ScrapeCounts,
    envoy_info: Gauges<1>,
    filter_info: Gauges<2>,
    ready: Gauge,
    condition: Gauges<1>,
    startup_seconds: Seconds,
    envoy_epoch: Gauge,
    draining: Gauge,
    config_rejected: Gauges<1>,
    readiness_changes: Counters<2>,
    envoy_exits: Counters<1>,
    envoy_log_dropped_lines: Counter,
    admin_requests: Counters<1>,
    data_path_requests: Counters<1>,
    admin_request_duration_seconds: Histograms,
    pub servers: ServerMetrics,
    held_requests: Gauge,
    scrapes: Counters<2>,
    scrape_dropped_lines: Counters<2>,
    resident_memory_bytes: Gauge,
    cpu_seconds: Counter<f64, AtomicU64>,
    open_fds: Gauge,
    /// CPU time in seconds that was added to the counter so far.
    cpu_counted: Mutex<f64>,
}

impl Metrics {
    pub fn new() -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(ADMIN_BUCKETS);
        let mut registry = Registry::with_prefix(PREFIX);
        let to = &mut registry;
        let build_info: Gauges<1> = register(to, "build_info", "Version of the agent");
        build_info.get_or_create(&[("version", env!("CARGO_PKG_VERSION").to_owned())]).set(1);
        let admin_request_duration_seconds = Family::new_with_constructor(histogram);
        to.register(
            "admin_request_duration_seconds",
            "Duration of requests to Envoy's admin interface",
            admin_request_duration_seconds.clone(),
        );
        Self {
            envoy_info: register(to, "envoy_info", "Version of Envoy, once it is known"),
            filter_info: register(to, "filter_info", "Form of the filter that was rendered, and why"),
            ready: register(to, "ready", "1 if all readiness conditions are met"),
            condition: register(to, "condition", "1 if this readiness condition is met"),
            startup_seconds: register(
                to,
                "startup_seconds",
                "Time from the agent's start to the first readiness of this Envoy process",
            ),
            envoy_epoch: register(to, "envoy_epoch", "Number of the current Envoy process, starting at 1"),
            draining: register(to, "draining", "1 during a drain"),
            config_rejected: register(
                to,
                "config_rejected",
                "1 if a part of this setting was ignored because it is invalid",
            ),
            readiness_changes: register(
                to,
                "readiness_changes",
                "Changes of readiness, by the conditions that caused them",
            ),
            envoy_exits: register(to, "envoy_exits", "Exits of Envoy"),
            envoy_log_dropped_lines: register(
                to,
                "envoy_log_dropped_lines",
                "Warnings and errors of Envoy that exceeded the limit of the log",
            ),
            admin_requests: register(to, "admin_requests", "Requests to Envoy's admin interface"),
            data_path_requests: register(
                to,
                "data_path_requests",
                "Readiness requests to the probe listener",
            ),
            admin_request_duration_seconds,
            servers: ServerMetrics::registered(to),
            held_requests: register(
                to,
                "held_requests",
                "Requests that are currently held until Envoy is ready",
            ),
            scrapes: register(to, "scrapes", "Scrapes of the sources of merged metrics"),
            scrape_dropped_lines: register(
                to,
                "scrape_dropped_lines",
                "Lines of the sources of merged metrics that cannot be merged",
            ),
            resident_memory_bytes: register(to, "resident_memory_bytes", "Resident memory of this process"),
            cpu_seconds: register(to, "cpu_seconds", "CPU time of this process"),
            open_fds: register(to, "open_fds", "Open file descriptors of this process"),
            #[cfg(feature = "vm")]
            vm: VmMetrics::new(to),
            cpu_counted: Mutex::new(0.0),
            others: Mutex::default(),
            scraped: ScrapeCounts::default(),
            registry,
        }
    }

    /// Adds the metrics of another part, whose names differ from those here.
    pub fn add(&self, registry: Registry) {
        self.others.lock().expect("nothing panics while it holds this lock").push(registry);
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

    pub fn filter_chosen(&self, choice: FilterChoice) {
        let labels = [("form", choice.form.word().to_owned()), ("reason", choice.reason.word().to_owned())];
        self.filter_info.clear();
        self.filter_info.get_or_create(&labels).set(1);
    }

    pub fn config_rejected(&self, key: &str) {
        self.config_rejected.get_or_create(&[("key", key.to_owned())]).set(1);
    }

    /// Records an exit of Envoy.
    pub fn envoy_exited(&self, cause: ExitCause) {
        let cause = match cause {
            ExitCause::Requested => "requested",
            ExitCause::Hung => "hung",
            ExitCause::Unexpected(ExitReason::Code(_)) => "code",
            ExitCause::Unexpected(ExitReason::Signal(_) | ExitReason::Unknown) => "signal",
        };
        self.envoy_exits.get_or_create(&[("cause", cause.to_owned())]).inc();
    }

    pub fn admin_request(&self, result: Result<(), RequestFailure>, took: Duration) {
        let labels = [("outcome", RequestFailure::outcome(result).to_owned())];
        self.admin_requests.get_or_create(&labels).inc();
        self.admin_request_duration_seconds.get_or_create(&labels).observe(took.as_secs_f64());
    }

    pub fn data_path_request(&self, result: Result<(), RequestFailure>) {
        self.data_path_requests
            .get_or_create(&[("outcome", RequestFailure::outcome(result).to_owned())])
            .inc();
    }

    /// Counts a held request until the result is dropped.
    pub fn held(&self) -> GaugeGuard {
        GaugeGuard::new(self.held_requests.clone())
    }

    /// Counts the scrape of one source.
    pub fn scrape(&self, source: &'static str, outcome: &'static str) {
        self.scrapes.get_or_create(&[("source", source.to_owned()), ("outcome", outcome.to_owned())]).inc();
    }

    /// Returns the time from the agent's start to readiness in seconds, 0 before it.
    pub fn startup_seconds(&self) -> f64 {
        self.startup_seconds.get()
    }

    pub fn envoy_log_line_dropped(&self) {
        self.envoy_log_dropped_lines.inc();
    }

    pub fn dropped_lines(&self, source: &'static str, reason: &'static str, count: u64) {
        let labels = [("source", source.to_owned()), ("reason", reason.to_owned())];
        self.scrape_dropped_lines.get_or_create(&labels).inc_by(count);
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
        #[cfg(feature = "vm")]
        self.vm.update();
        let mut text = String::new();
        for other in &*self.others.lock().expect("nothing panics while it holds this lock") {
            encode_registry(&mut text, other).expect("writing to a String cannot fail");
        }
        encode(&mut text, &self.registry).expect("writing to a String cannot fail");
        text
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

fn register<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

#[cfg(test)]
mod tests;
