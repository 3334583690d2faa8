//! `GET /healthz/ready` and `/healthz/live` on port 15021, answered from the current snapshot.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{CACHE_CONTROL, HeaderValue};
use serving::http_server::{HttpRequest, Response, json, not_allowed, not_found, text};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use agent_state::state::{AgentState, age_text};
use readiness::{Phase, Snapshot};

pub const READY_PATH: &str = "/healthz/ready";
/// Path of the liveness endpoint, which is optional.
pub const LIVE_PATH: &str = "/healthz/live";
const HELD: usize = 16;
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// When /healthz/live fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LivenessConfig {
    /// How long the admin port may be unresponsive; `None` means indefinitely.
    pub admin: Option<Duration>,
}

#[derive(Clone)]
pub struct ReadinessServer {
    state: Arc<AgentState>,
    held: Arc<Semaphore>,
    live: Option<LivenessConfig>,
}

/// Parsed query; unknown parameters are ignored, as is a wait outside its range.
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
    /// Without `live`, [`LIVE_PATH`] is not served.
    pub fn new(state: Arc<AgentState>, live: Option<LivenessConfig>) -> Self {
        Self { state, held: Arc::new(Semaphore::new(HELD)), live }
    }

    pub async fn answer(self, request: HttpRequest) -> Response {
        let is_read = request.is_read();
        let mut response = match (request.path(), self.live) {
            (READY_PATH, _) if is_read => self.ready(request).await,
            (LIVE_PATH, Some(live)) if is_read => self.live(live),
            (READY_PATH, _) | (LIVE_PATH, Some(_)) => not_allowed("GET, HEAD"),
            _ => not_found(),
        };
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }

    fn live(&self, live: LivenessConfig) -> Response {
        match self.state.with_readiness(|ready| ready.alive(live.admin, self.state.now())) {
            Ok(()) => text(StatusCode::OK, "alive\n"),
            Err(reason) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
        }
    }

    /// Answers 200 with `ready`, or 503 with the reasons. `?verbose` selects JSON. With `?wait=N` a
    /// request of a client on this host is held until Envoy is ready, until N ms have passed, or
    /// until the agent drains or terminates.
    async fn ready(&self, request: HttpRequest) -> Response {
        let query = Query::parse(request.query());
        if let Some(wait) = query.wait
            && request.peer.is_local()
            && let Ok(_held) = self.held.try_acquire()
        {
            request.slot.release();
            let _counted = self.state.metrics().held();
            self.until_ready(wait).await;
        }
        let snapshot = self.state.subscribe().borrow().clone();
        let status = if snapshot.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        let stale = self.state.stale();
        let body = match (query.verbose, stale) {
            (true, _) => snapshot.verbose(self.state.now(), stale, self.state.store_error()),
            (false, None) => snapshot.body.clone(),
            (false, Some(age)) => with_age(&snapshot.body, age),
        };
        if query.verbose { json(status, body) } else { text(status, body) }
    }

    async fn until_ready(&self, wait: Duration) {
        let over = |snapshot: &Arc<Snapshot>| {
            snapshot.is_ready() || matches!(snapshot.phase, Phase::Draining | Phase::Terminating)
        };
        let mut snapshots = self.state.subscribe();
        // After a timeout the response is the current state.
        let _ = timeout(wait, snapshots.wait_for(over)).await;
    }
}

/// Appends that Envoy uses a stored configuration.
fn with_age(body: &Bytes, age: Duration) -> Bytes {
    let line = format!("configuration from cache, stale: {}\n", age_text(age));
    [body, line.as_bytes()].concat().into()
}

#[cfg(test)]
mod tests;
