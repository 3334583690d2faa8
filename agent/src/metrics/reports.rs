//! Metrics of the stream to a discovery server.

use std::sync::Mutex;

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use super::{Counters, Seconds};

#[derive(Debug, Default)]
pub struct ReportMetrics {
    discovery_connected: Gauge,
    discovery_connects: Counters<1>,
    reports: Counters<1>,
    report_unacked_seconds: Seconds,
    tls_reload: Counters<1>,
    unacknowledged: Mutex<Option<Instant>>,
}

impl ReportMetrics {
    pub(super) fn register(&self, to: &mut Registry) {
        let connected = "1 while a stream to a discovery server is open";
        to.register("discovery_connected", connected, self.discovery_connected.clone());
        let connects = "Attempts to open a stream to a discovery server";
        to.register("discovery_connects", connects, self.discovery_connects.clone());
        to.register("reports", "Health reports that were sent, resent or acknowledged", self.reports.clone());
        let unacked =
            "Time for which the latest report has been waiting for its acknowledgement, 0 if it is not";
        to.register("report_unacked_seconds", unacked, self.report_unacked_seconds.clone());
        let reload = "Reloads of the certificate files for the discovery server";
        to.register("tls_reload", reload, self.tls_reload.clone());
    }

    /// Records whether a stream is open.
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
