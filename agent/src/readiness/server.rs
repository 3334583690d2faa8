//! `GET /healthz/ready` on 15021, answered from the snapshot.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{CACHE_CONTROL, HeaderValue};
use hyper::{Method, StatusCode};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::poller::Observer;
use super::{Phase, Snapshot};
use crate::http_server::{Call, Response, json, not_allowed, not_found, text};

/// The one path of this port.
pub const PATH: &str = "/healthz/ready";
/// Requests that may be held until readiness at the same time.
const HELD: usize = 16;
/// The longest time for which one is held.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// What the answers come from.
#[derive(Clone)]
pub struct ReadinessServer {
    observer: Arc<Observer>,
    held: Arc<Semaphore>,
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
    /// Answers from what `observer` knows.
    pub fn new(observer: Arc<Observer>) -> Self {
        Self { observer, held: Arc::new(Semaphore::new(HELD)) }
    }

    /// 200 `ready`, or 503 and the reasons. `?verbose`: the same as JSON. `?wait=N` of a peer on this machine: held until ready, until N
    /// ms are over, or until the agent drains or ends.
    pub async fn answer(self, call: Call) -> Response {
        if call.path != PATH {
            return not_found();
        }
        if call.method != Method::GET && call.method != Method::HEAD {
            return not_allowed("GET, HEAD");
        }
        let query = Query::parse(&call.query);
        if let Some(wait) = query.wait
            && is_local(call.peer)
            && let Ok(_held) = self.held.try_acquire()
        {
            call.slot.leave();
            self.until_ready(wait).await;
        }
        let snapshot = self.observer.subscribe().borrow().clone();
        let status = if snapshot.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        let body: Bytes =
            if query.verbose { snapshot.verbose(self.observer.now()) } else { snapshot.body.clone() };
        let mut response = if query.verbose { json(status, body) } else { text(status, body) };
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
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

/// From this machine and not from a proxy on it: captured traffic arrives from 127.0.0.6 and ::6.
fn is_local(peer: SocketAddr) -> bool {
    let ip = peer.ip().to_canonical();
    ip == IpAddr::V4(Ipv4Addr::LOCALHOST) || ip == IpAddr::V6(Ipv6Addr::LOCALHOST)
}

#[cfg(test)]
mod tests;
