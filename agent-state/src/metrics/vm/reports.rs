//! Metrics of the stream to a discovery server.

use std::sync::Mutex;

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use crate::metrics::{Counters, Seconds, register};

#[derive(Debug)]
pub struct ReportMetrics {
    discovery_connected: Gauge,
    discovery_connects: Counters<1>,
    reports: Counters<1>,
    report_unacked_seconds: Seconds,
    tls_reload: Counters<1>,
    unacknowledged: Mutex<Option<Instant>>,
}

impl ReportMetrics {
    pub(super) fn new(to: &mut Registry) -> Self {
        Self {
            discovery_connected: register(
                to,
                "discovery_connected",
                "1 while a stream to a discovery server is open",
            ),
            discovery_connects: register(
                to,
                "discovery_connects",
                "Attempts to open a stream to a discovery server",
            ),
            reports: register(to, "reports", "Health reports that were sent, resent or acknowledged"),
            report_unacked_seconds: register(
                to,
                "report_unacked_seconds",
                "Time for which the latest report has been waiting for its acknowledgement, 0 if it is not",
            ),
            tls_reload: register(
                to,
                "tls_reload",
                "Reloads of the certificate files for the discovery server",
            ),
            unacknowledged: Mutex::new(None),
        }
    }

    pub fn connected(&self, connected: bool) {
        self.discovery_connected.set(connected.into());
    }

    /// Records an attempt to connect; the result is `ok`, `failed`, or `refused` if the server
    /// rejected the agent.
    pub fn connect(&self, result: &'static str) {
        self.discovery_connects.get_or_create(&[("result", result.to_owned())]).inc();
    }

    /// Records a report; the result is `sent`, `resent` or `acked`.
    pub fn report(&self, result: &'static str) {
        self.reports.get_or_create(&[("result", result.to_owned())]).inc();
    }

    /// Sets the time since which the latest report waits for its acknowledgement.
    pub fn unacknowledged(&self, since: Option<Instant>) {
        *self.unacknowledged.lock().expect("nothing panics while it holds this lock") = since;
    }

    /// Records a reload of changed certificate files; the result is `ok` or `failed`.
    pub fn reloaded(&self, result: &'static str) {
        self.tls_reload.get_or_create(&[("result", result.to_owned())]).inc();
    }

    /// Updates the values that depend on the current time. Call it before the metrics are
    /// encoded.
    pub(super) fn update(&self) {
        let since = *self.unacknowledged.lock().expect("nothing panics while it holds this lock");
        self.report_unacked_seconds.set(since.map_or(0.0, |since| since.elapsed().as_secs_f64()));
    }
}
