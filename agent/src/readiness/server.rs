//! `GET /healthz/ready` and `/healthz/live` on 15021, answered from what is known.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{CACHE_CONTROL, HeaderValue};
use hyper::{Method, StatusCode};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::poller::Observer;
use super::{Phase, Snapshot};
use crate::config::Live;
use crate::http_server::{Call, Response, json, not_allowed, not_found, text};

/// Where readiness is asked.
pub const READY_PATH: &str = "/healthz/ready";
/// Where liveness is, if it is answered at all.
pub const LIVE_PATH: &str = "/healthz/live";
/// Requests that may be held until readiness at the same time.
const HELD: usize = 16;
/// The longest time for which one is held.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// What the answers come from.
#[derive(Clone)]
pub struct ReadinessServer {
    observer: Arc<Observer>,
    held: Arc<Semaphore>,
    live: Option<Live>,
}

/// What a query asks for; unknown keys are ignored, as is a wait outside its range.
#[derive(Debug, Default, PartialEq, Eq)]
struct Query {
    verbose: bool,
    wait: Option<Duration>,
}

impl Query {
    fn parse(query: &str) -> Self {
        let mut parsed = Self::default();
        for field in query.split('&') {
            let (key, value) = field.split_once('=').unwrap_or((field, ""));
            match key {
                "verbose" => parsed.verbose = true,
                "wait" => {
                    let wait = value.parse().ok().map(Duration::from_millis);
                    parsed.wait = wait.filter(|wait| !wait.is_zero() && *wait <= LONGEST_WAIT);
                }
                _ => {}
            }
        }
        parsed
    }
}

impl ReadinessServer {
    /// Answers from what `observer` knows. Without `live` there is no [`LIVE_PATH`].
    pub fn new(observer: Arc<Observer>, live: Option<Live>) -> Self {
        Self { observer, held: Arc::new(Semaphore::new(HELD)), live }
    }

    /// Either path with GET or HEAD.
    pub async fn answer(self, call: Call) -> Response {
        let is_read = call.method == Method::GET || call.method == Method::HEAD;
        let mut response = match (call.path.as_str(), self.live) {
            (READY_PATH, _) if is_read => self.ready(call).await,
            (LIVE_PATH, Some(live)) if is_read => self.live(live),
            (READY_PATH, _) | (LIVE_PATH, Some(_)) => not_allowed("GET, HEAD"),
            _ => not_found(),
        };
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }

    fn live(&self, live: Live) -> Response {
        match self.observer.look(|ready| ready.alive(live.admin, self.observer.now())) {
            Ok(()) => text(StatusCode::OK, "alive\n"),
            Err(reason) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
        }
    }

    /// 200 `ready`, or 503 and the reasons. `?verbose`: the same as JSON. `?wait=N` of a peer on this machine: held until ready, until N
    /// ms are over, or until the agent drains or ends.
    async fn ready(&self, call: Call) -> Response {
        let query = Query::parse(&call.query);
        if let Some(wait) = query.wait
            && call.peer.is_local()
            && let Ok(_held) = self.held.try_acquire()
        {
            call.slot.leave();
            let _counted = self.observer.metrics().held();
            self.until_ready(wait).await;
        }
        let snapshot = self.observer.subscribe().borrow().clone();
        let status = if snapshot.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        let body: Bytes =
            if query.verbose { snapshot.verbose(self.observer.now()) } else { snapshot.body.clone() };
        if query.verbose { json(status, body) } else { text(status, body) }
    }

    async fn until_ready(&self, wait: Duration) {
        let over = |snapshot: &Arc<Snapshot>| {
            snapshot.is_ready() || matches!(snapshot.phase, Phase::Draining | Phase::Terminating)
        };
        let mut snapshots = self.observer.subscribe();
        // When the time is over the answer is whatever is known then.
        let _ = timeout(wait, snapshots.wait_for(over)).await;
    }
}

#[cfg(test)]
mod tests;
