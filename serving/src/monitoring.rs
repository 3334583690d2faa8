//! Serves `/metrics`, `/healthz/live` and `/healthz/ready` on port 15014.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use crate::http_server::{
    HttpRequest, Limits, Reserved, Response, Server, ServerMetrics, not_allowed, not_found, response, text,
};
use bytes::Bytes;
use hyper::StatusCode;

const METRICS: &str = "/metrics";
const LIVE: &str = "/healthz/live";
pub const READY: &str = "/healthz/ready";

/// Limits of the monitoring port. No client keeps a connection, and health checks have slots of
/// their own.
const LIMITS: Limits = Limits {
    connections: 64,
    source_connections: 16,
    reserved: Reserved { connections: 16, paths: &[LIVE, READY] },
    ..Limits::ONE_REQUEST
};

/// Named conditions that readiness waits for; the process is ready if the set is empty.
#[derive(Clone, Debug)]
pub struct Pending(Arc<Mutex<BTreeSet<&'static str>>>);

impl Pending {
    /// Creates the set with these reasons.
    pub fn new(reasons: impl IntoIterator<Item = &'static str>) -> Self {
        Self(Arc::new(Mutex::new(reasons.into_iter().collect())))
    }

    /// Adds or removes a reason.
    pub fn set(&self, reason: &'static str, pending: bool) {
        let mut reasons = self.0.lock().expect("nothing panics while it holds this lock");
        if pending {
            reasons.insert(reason)
        } else {
            reasons.remove(reason)
        };
    }

    /// Returns the remaining reasons in sorted order.
    pub fn reasons(&self) -> Vec<&'static str> {
        self.0.lock().expect("nothing panics while it holds this lock").iter().copied().collect()
    }
}

/// Settings of the server on the monitoring port.
pub fn server(metrics: ServerMetrics) -> Server {
    Server { name: "monitoring", paths: &[METRICS, LIVE, READY], limits: LIMITS, metrics }
}

/// Answers one request; `metrics` returns the text for `/metrics`.
pub fn answer(request: &HttpRequest, pending: &Pending, metrics: impl Fn() -> String) -> Response {
    let path = request.path();
    if !matches!(path, METRICS | LIVE | READY) {
        return not_found();
    }
    if !request.is_read() {
        return not_allowed("GET, HEAD");
    }
    match path {
        METRICS => {
            let body = Bytes::from(metrics());
            response(StatusCode::OK, "application/openmetrics-text; version=1.0.0; charset=utf-8", body)
        }
        LIVE => text(StatusCode::OK, "live\n"),
        _ => match pending.reasons().as_slice() {
            [] => text(StatusCode::OK, "ready\n"),
            reasons => text(StatusCode::SERVICE_UNAVAILABLE, reasons.join("\n") + "\n"),
        },
    }
}
