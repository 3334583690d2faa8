//! The agent's admin server on port 15004: drain, quit, debug and metrics. It accepts requests from
//! this host only, and rejects those that a proxy forwarded or a browser sent.

use std::sync::Arc;
use std::time::Duration;

use hyper::header::{FORWARDED, HOST, ORIGIN, VIA};
use hyper::{HeaderMap, Method, StatusCode};
use serving::http_server::{HttpRequest, Response, json, not_allowed, not_found, text};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use crate::address::HttpUrl;
use crate::envoy::admin_client;
use crate::health::HealthHandle;
use crate::log::LogLevelHandle;
use crate::readiness::{Observation, Phase};
use crate::report::StreamStatus;
use crate::scrape::Scraper;
use crate::state::AgentState;
use crate::supervisor::AdminCommand;

/// Paths of this port, as they appear in metrics.
pub const PATHS: [&str; 8] = [DRAIN, QUIT, STATE, BOOTSTRAP, HEALTH, LOG, MERGED, OWN];
pub const DRAIN: &str = "/drain";
/// Path that terminates the agent; the name is Istio's.
pub const QUIT: &str = "/quitquitquit";
/// Interval between two queries for open connections, and the timeout of each query.
const COUNT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: u64 = 3_600_000;
const STATE: &str = "/debug/state";
const BOOTSTRAP: &str = "/debug/bootstrap";
const HEALTH: &str = "/debug/vm-health";
const LOG: &str = "/debug/log";
const MERGED: &str = "/stats/prometheus";
const OWN: &str = "/metrics";

#[derive(Clone)]
pub struct LocalServer {
    pub state: Arc<AgentState>,
    pub commands: mpsc::Sender<AdminCommand>,
    /// Rendered bootstrap without secrets.
    pub bootstrap: Option<Arc<str>>,
    /// URL of Envoy's admin interface; its path is ignored.
    pub admin: HttpUrl,
    pub scraper: Scraper,
    pub log: LogLevelHandle,
    /// `None` if the agent runs no health checks.
    pub health: Option<HealthHandle>,
    /// `None` if the agent reports no health to a discovery server.
    pub stream: Option<watch::Receiver<StreamStatus>>,
}

/// Parses `wait=N`, which ranges from 1 ms to one hour.
fn wait(query: &str) -> Option<Duration> {
    let millis: u64 = query.split('&').find_map(|field| field.strip_prefix("wait="))?.parse().ok()?;
    (1..=LONGEST_WAIT).contains(&millis).then(|| Duration::from_millis(millis))
}

impl LocalServer {
    pub async fn answer(self, request: HttpRequest) -> Response {
        // Requests for merged metrics pass through Envoy, on behalf of any client that may scrape.
        if !request.peer.is_local() || !(request.path() == MERGED || is_direct(&request.headers)) {
            return text(StatusCode::FORBIDDEN, "allowed from this host only\n");
        }
        let (method, allow) = match request.path() {
            DRAIN | QUIT => (Method::POST, "POST"),
            LOG => (Method::PUT, "PUT"),
            STATE | BOOTSTRAP | HEALTH | MERGED | OWN => (Method::GET, "GET"),
            _ => return not_found(),
        };
        if request.method != method {
            return not_allowed(allow);
        }
        match request.path() {
            DRAIN => {
                self.state.apply(Observation::Draining);
                let response = self.command(AdminCommand::Drain).await;
                if let Some(wait) = wait(request.query()) {
                    request.slot.release();
                    self.wait_until_unused(wait).await;
                }
                response
            }
            QUIT => {
                info!("quit requested by POST /quitquitquit");
                self.command(AdminCommand::Quit).await
            }
            STATE => {
                let now = self.state.now();
                json(StatusCode::OK, self.state.with_readiness(|ready| ready.detailed(now)))
            }
            BOOTSTRAP => match &self.bootstrap {
                Some(bootstrap) => json(StatusCode::OK, bootstrap.as_bytes().to_vec().into()),
                None => text(StatusCode::NOT_FOUND, "no bootstrap was rendered\n"),
            },
            HEALTH => match &self.health {
                Some(health) => json(StatusCode::OK, health.view(&self.stream_view())),
                None => text(StatusCode::NOT_FOUND, "no workload is probed\n"),
            },
            MERGED => self.scraper.merged(&request.headers, request.query()).await,
            OWN => self.scraper.own(),
            _ => self.log_level(request.query()),
        }
    }

    fn stream_view(&self) -> serde_json::Value {
        let status = self.stream.as_ref().map(|stream| stream.borrow().to_json(Instant::now()));
        status.unwrap_or_default()
    }

    async fn command(&self, command: AdminCommand) -> Response {
        match self.commands.send(command).await {
            Ok(()) => text(StatusCode::OK, "OK"),
            Err(_) => text(StatusCode::SERVICE_UNAVAILABLE, "terminating\n"),
        }
    }

    /// Returns when the application has no open connections, when the time is over, or when the
    /// agent terminates. Without statistics it waits for the full time.
    async fn wait_until_unused(&self, wait: Duration) {
        let unused = async {
            while admin_client::open_connections(&self.admin, COUNT).await != Some(0) {
                sleep(COUNT).await;
            }
        };
        let mut snapshots = self.state.subscribe();
        tokio::select! {
            _ = timeout(wait, unused) => {}
            _ = snapshots.wait_for(|snapshot| snapshot.phase == Phase::Terminating) => {}
        }
    }

    fn log_level(&self, query: &str) -> Response {
        let level = query.split('&').find_map(|field| field.strip_prefix("level="));
        match level.filter(|level| self.log.set(level)) {
            Some(level) => {
                // The level is one of five words at this point.
                warn!(level, "log level changed");
                text(StatusCode::OK, "OK")
            }
            None => text(StatusCode::BAD_REQUEST, "level must be error, warn, info, debug or trace\n"),
        }
    }
}

/// Returns true if the headers show neither a proxy in between nor a browser. A proxy adds
/// forwarding headers; a browser adds `Origin` or sends the name that it resolved as the host.
fn is_direct(headers: &HeaderMap) -> bool {
    let is_trace = |name: &str| {
        name.starts_with("x-envoy-")
            || [FORWARDED.as_str(), VIA.as_str(), ORIGIN.as_str(), "x-forwarded-for"].contains(&name)
    };
    let host = |value: &hyper::header::HeaderValue| value.to_str().is_ok_and(is_local_host);
    !headers.keys().any(|name| is_trace(name.as_str())) && headers.get_all(HOST).iter().all(host)
}

/// Returns true for `localhost` or a loopback address, with or without a port.
fn is_local_host(host: &str) -> bool {
    let Ok(authority) = host.parse::<hyper::http::uri::Authority>() else { return false };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    let is_loopback = name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    !authority.as_str().contains('@') && (name.eq_ignore_ascii_case("localhost") || is_loopback)
}

#[cfg(test)]
mod tests;
