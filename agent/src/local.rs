//! 15004, for this machine alone: drain, quit, debug, metrics. A caller behind a proxy, or in a browser, is not of this machine.

use std::sync::Arc;
use std::time::Duration;

use hyper::header::{FORWARDED, HOST, ORIGIN, VIA};
use hyper::{HeaderMap, Method, StatusCode};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use crate::address::HttpUrl;
use crate::envoy::admin;
use crate::envoy::supervisor::Order;
use crate::health::Health;
use crate::http_server::{Call, Response, forbidden, json, not_allowed, not_found, text};
use crate::log::LogLevelHandle;
use crate::metrics::scrape::Scraper;
use crate::readiness::poller::Observer;
use crate::readiness::{Observation, Phase};
use crate::report::StreamNow;

/// What this port has, for metrics.
pub const PATHS: [&str; 8] = [DRAIN, QUIT, STATE, BOOTSTRAP, HEALTH, LOG, MERGED, OWN];
/// Begins a drain.
pub const DRAIN: &str = "/drain";
/// Ends the agent, Istio's name.
pub const QUIT: &str = "/quitquitquit";
/// Between two questions about open connections, and the deadline of each.
const COUNT: Duration = Duration::from_millis(500);
/// The longest `?wait=` of a drain, in milliseconds.
const LONGEST_WAIT: u64 = 3_600_000;
const STATE: &str = "/debug/state";
const BOOTSTRAP: &str = "/debug/bootstrap";
const HEALTH: &str = "/debug/vm-health";
const LOG: &str = "/debug/log";
const MERGED: &str = "/stats/prometheus";
const OWN: &str = "/metrics";

/// What the answers come from.
#[derive(Clone)]
pub struct LocalServer {
    /// What is known.
    pub observer: Arc<Observer>,
    /// To the main loop.
    pub orders: mpsc::Sender<Order>,
    /// What was rendered, without secrets.
    pub bootstrap: Option<Arc<str>>,
    /// Envoy's admin port; the path does not matter.
    pub admin: HttpUrl,
    /// The merged metrics.
    pub scraper: Scraper,
    /// Changes the log.
    pub log: LogLevelHandle,
    /// Absent: nothing probes.
    pub health: Option<Health>,
    /// Absent: nothing is reported.
    pub stream: Option<watch::Receiver<StreamNow>>,
}

/// `wait=N`, 1 ms to an hour.
fn wait(query: &str) -> Option<Duration> {
    let millis: u64 = query.split('&').find_map(|field| field.strip_prefix("wait="))?.parse().ok()?;
    (1..=LONGEST_WAIT).contains(&millis).then(|| Duration::from_millis(millis))
}

impl LocalServer {
    /// Answers everything of this port.
    pub async fn answer(self, call: Call) -> Response {
        // The merged metrics come through Envoy, whose caller is whoever may scrape.
        if !call.peer.is_local() || !(call.path == MERGED || is_direct(&call.headers)) {
            return forbidden();
        }
        let known = [
            (DRAIN, Method::POST, "POST"),
            (QUIT, Method::POST, "POST"),
            (STATE, Method::GET, "GET"),
            (BOOTSTRAP, Method::GET, "GET"),
            (HEALTH, Method::GET, "GET"),
            (LOG, Method::PUT, "PUT"),
            (MERGED, Method::GET, "GET"),
            (OWN, Method::GET, "GET"),
        ];
        match known.iter().find(|(path, ..)| *path == call.path) {
            None => not_found(),
            Some((_, method, allow)) if call.method != *method => not_allowed(allow),
            Some((path, ..)) => self.serve(path, &call).await,
        }
    }

    async fn serve(&self, path: &str, call: &Call) -> Response {
        match path {
            DRAIN => {
                self.observer.tell(Observation::Draining);
                let answer = self.order(Order::Drain).await;
                if let Some(wait) = wait(&call.query) {
                    call.slot.leave();
                    self.until_unused(wait).await;
                }
                answer
            }
            QUIT => {
                info!("POST /quitquitquit");
                self.order(Order::Quit).await
            }
            STATE => {
                let now = self.observer.now();
                json(StatusCode::OK, self.observer.look(|ready| ready.detailed(now)))
            }
            BOOTSTRAP => match &self.bootstrap {
                Some(bootstrap) => json(StatusCode::OK, bootstrap.as_bytes().to_vec().into()),
                None => text(StatusCode::NOT_FOUND, "nothing was rendered\n"),
            },
            HEALTH => match &self.health {
                Some(health) => json(StatusCode::OK, health.view(self.stream_view())),
                None => text(StatusCode::NOT_FOUND, "no workload is probed\n"),
            },
            MERGED => self.scraper.merged(&call.headers, &call.query).await,
            OWN => self.scraper.own(),
            _ => self.log_level(&call.query),
        }
    }

    fn stream_view(&self) -> serde_json::Value {
        let view = self.stream.as_ref().map(|stream| stream.borrow().view(Instant::now()));
        view.map_or(serde_json::Value::Null, |view| view.to_json())
    }

    async fn order(&self, order: Order) -> Response {
        match self.orders.send(order).await {
            Ok(()) => text(StatusCode::OK, "OK"),
            Err(_) => text(StatusCode::SERVICE_UNAVAILABLE, "terminating\n"),
        }
    }

    /// Returns when the application has no connection left, when the time is over, or when the agent ends. Where there are no
    /// statistics the time is what is left to go by.
    async fn until_unused(&self, wait: Duration) {
        let unused = async {
            while admin::open_connections(&self.admin, COUNT).await != Some(0) {
                sleep(COUNT).await;
            }
        };
        let mut snapshots = self.observer.subscribe();
        tokio::select! {
            _ = timeout(wait, unused) => {}
            _ = snapshots.wait_for(|snapshot| snapshot.phase == Phase::Terminating) => {}
        }
    }

    fn log_level(&self, query: &str) -> Response {
        let level = query.split('&').find_map(|field| field.strip_prefix("level="));
        match level.filter(|level| self.log.set(level)) {
            Some(level) => {
                // One of five words by now.
                warn!(level, "the log level was changed");
                text(StatusCode::OK, "OK")
            }
            None => text(StatusCode::BAD_REQUEST, "level must be error, warn, info, debug or trace\n"),
        }
    }
}

/// No trace of an Envoy in between, nor of a browser: those say whom they speak for, or which name they looked up.
fn is_direct(headers: &HeaderMap) -> bool {
    let is_trace = |name: &str| {
        name.starts_with("x-envoy-")
            || [FORWARDED.as_str(), VIA.as_str(), ORIGIN.as_str(), "x-forwarded-for"].contains(&name)
    };
    let host = |value: &hyper::header::HeaderValue| value.to_str().is_ok_and(is_local_host);
    !headers.keys().any(|name| is_trace(name.as_str())) && headers.get_all(HOST).iter().all(host)
}

/// `localhost` or a loopback address, with a port or without one.
fn is_local_host(host: &str) -> bool {
    let Ok(authority) = host.parse::<hyper::http::uri::Authority>() else { return false };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    let is_loopback = name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    !authority.as_str().contains('@') && (name.eq_ignore_ascii_case("localhost") || is_loopback)
}

#[cfg(test)]
mod tests;
