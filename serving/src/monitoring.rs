//! Serves `/metrics`, `/healthz/live` and `/healthz/ready` on port 15014.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use hyper::body::Body;
use hyper::{Method, Request, StatusCode};

use crate::http_server::{Response, not_allowed, response, text};

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

/// Answers one request; `metrics` returns the text for `/metrics`.
pub fn answer<B: Body>(request: &Request<B>, pending: &Pending, metrics: impl Fn() -> String) -> Response {
    let path = request.uri().path();
    if !matches!(path, "/metrics" | "/healthz/live" | "/healthz/ready") {
        return text(StatusCode::NOT_FOUND, "not found");
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return not_allowed("GET, HEAD");
    }
    match path {
        "/metrics" => {
            let body = Bytes::from(metrics());
            response(StatusCode::OK, "application/openmetrics-text; version=1.0.0; charset=utf-8", body)
        }
        "/healthz/live" => text(StatusCode::OK, "live"),
        _ => match pending.reasons().as_slice() {
            [] => text(StatusCode::OK, "ready"),
            reasons => text(StatusCode::SERVICE_UNAVAILABLE, &reasons.join("\n")),
        },
    }
}
