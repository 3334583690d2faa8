//! Metrics of the webhook. The values of every label are a fixed set, so that no client can create
//! time series.

use std::borrow::Cow;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

use crate::webhook::review::Reviewed;
use serving::http_server::ServerMetrics;

/// Counters by labels, each with its name and value.
type Counters<const LABELS: usize> = Family<[(&'static str, Cow<'static, str>); LABELS], Counter>;

#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    reviews: Counters<1>,
    duration: Histogram,
    probes: Counters<2>,
    warnings: Counters<1>,
    errors: Counters<1>,
    reloads: Counters<2>,
    not_after: Gauge<f64, AtomicU64>,
    /// Metrics of the HTTP servers.
    pub servers: ServerMetrics,
}

/// Creates a metric and registers it.
fn register<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("app_health_webhook");
        let into = &mut registry;
        let duration = Histogram::new([0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0]);
        Self {
            servers: ServerMetrics::registered(into),
            reviews: register(into, "reviews", "Reviews by result", Family::default()),
            duration: register(
                into,
                "review_duration_seconds",
                "Duration of a review after its body was read",
                duration,
            ),
            probes: register(into, "probes", "Probes and hooks by handler and result", Family::default()),
            warnings: register(into, "warnings", "Warnings by code", Family::default()),
            errors: register(into, "http_errors", "HTTP error responses by status", Family::default()),
            reloads: register(
                into,
                "reloads",
                "Reloads of certificates and templates by result",
                Family::default(),
            ),
            not_after: register(
                into,
                "certificate_not_after_seconds",
                "Expiry of the certificate in use, in seconds since 1970",
                Gauge::default(),
            ),
            registry,
        }
    }
}

impl Metrics {
    /// Counts a review that took `seconds`.
    pub fn reviewed(&self, reviewed: &Reviewed, seconds: f64) {
        self.reviews.get_or_create(&[("result", reviewed.outcome.word().into())]).inc();
        self.duration.observe(seconds);
        for probe in &reviewed.probes {
            let handler = if probe.handler.is_empty() { "none" } else { probe.handler };
            let labels = [("handler", handler.into()), ("result", probe.result.word().into())];
            self.probes.get_or_create(&labels).inc();
        }
        for warning in &reviewed.warnings {
            self.warnings.get_or_create(&[("code", warning.code.word().into())]).inc();
        }
    }

    /// Counts an error response.
    pub fn refused(&self, status: u16) {
        self.errors.get_or_create(&[("status", status.to_string().into())]).inc();
    }

    /// Counts a reload of `kind` (`certificate` or `template`) after its content had changed.
    pub fn reloaded(&self, kind: &'static str, worked: bool) {
        let result = if worked { "success" } else { "failure" };
        self.reloads.get_or_create(&[("kind", kind.into()), ("result", result.into())]).inc();
    }

    /// Sets when the certificate in use expires, in seconds since 1970.
    pub fn certificate(&self, not_after: i64) {
        #[expect(clippy::cast_precision_loss, reason = "seconds of this age are exact in a double")]
        self.not_after.set(not_after as f64);
    }

    /// Returns all metrics in the OpenMetrics text format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("a string takes everything");
        text
    }
}
