//! Metrics of the stream to a discovery server.

use std::sync::Mutex;

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use super::{Counters, Seconds};

/// All of them.
#[derive(Debug, Default)]
pub struct Reports {
    discovery_connected: Gauge,
    discovery_connects: Counters<1>,
    reports: Counters<1>,
    report_unacked_seconds: Seconds,
    tls_reload: Counters<1>,
    unacknowledged: Mutex<Option<Instant>>,
}

impl Reports {
    pub(super) fn register(&self, to: &mut Registry) {
        let connected = "1 while there is a stream to a discovery server";
        to.register("discovery_connected", connected, self.discovery_connected.clone());
        let connects = "Attempts at a stream to a discovery server";
        to.register("discovery_connects", connects, self.discovery_connects.clone());
        to.register("reports", "Health reports: sent, said again, acknowledged", self.reports.clone());
        let unacked = "Since when the newest report waits for its acknowledgement, 0: it does not";
        to.register("report_unacked_seconds", unacked, self.report_unacked_seconds.clone());
        let reload = "Changes of the certificate files towards a discovery server";
        to.register("tls_reload", reload, self.tls_reload.clone());
    }

    /// Is there a stream?
    pub fn connected(&self, connected: bool) {
        self.discovery_connected.set(connected.into());
    }

    /// An attempt: `ok`, `failed`; `refused`: by the server's word.
    pub fn connect(&self, result: &'static str) {
        self.discovery_connects.get_or_create(&[("result", result.to_owned())]).inc();
    }

    /// A report: `sent`, `resent`, `acked`.
    pub fn report(&self, result: &'static str) {
        self.reports.get_or_create(&[("result", result.to_owned())]).inc();
    }

    /// Since when the newest report waits.
    pub fn unacknowledged(&self, since: Option<Instant>) {
        *self.unacknowledged.lock().expect("nothing panics while it holds this lock") = since;
    }

    /// Changed certificate files: `ok`, `failed`.
    pub fn reloaded(&self, result: &'static str) {
        self.tls_reload.get_or_create(&[("result", result.to_owned())]).inc();
    }

    /// Before the values are read.
    pub(super) fn look(&self) {
        let since = *self.unacknowledged.lock().expect("nothing panics while it holds this lock");
        self.report_unacked_seconds.set(since.map_or(0.0, |since| since.elapsed().as_secs_f64()));
    }
}
