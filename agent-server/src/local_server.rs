//! The agent's local server on port 15004: status page, drain, quit, debug and metrics. It accepts requests from
//! this host only, and rejects those that a proxy forwarded or a browser sent.

use std::sync::Arc;
use std::time::Duration;

use hyper::{Method, StatusCode};
use serving::http_server::{HttpRequest, Response, json, not_allowed, not_found, text};
use serving::local_request::is_direct;
use serving::page::is_same_origin;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use crate::machine_view::MachineView;
use crate::page::StatusPage;
use address::HttpUrl;
use agent_output::log::LogLevelHandle;
use agent_state::state::AgentState;
use envoy_bootstrap::filter_choice::FilterChoice;
use envoy_process::envoy_files::DebugInfo;
use envoy_process::supervisor::LocalCommand;
use http_client::admin_client;
use readiness::{Observation, Phase};
use scrape::Scraper;

/// Paths of this port, as they appear in metrics.
pub const PATHS: [&str; 13] =
    [PAGE, EVENTS, DRAIN, UNDRAIN, QUIT, STATE, BOOTSTRAP, HEALTH, XDS, NAMES, LOG, MERGED, OWN];
pub const DRAIN: &str = "/drain";
pub const UNDRAIN: &str = "/undrain";
/// Path that terminates the agent; the name is Istio's.
pub const QUIT: &str = "/quitquitquit";
/// Interval between two queries for open connections, and the timeout of each query.
const COUNT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: u64 = 3_600_000;
const PAGE: &str = "/";
const EVENTS: &str = "/events";
const STATE: &str = "/debug/state";
const BOOTSTRAP: &str = "/debug/bootstrap";
const HEALTH: &str = "/debug/vm-health";
const XDS: &str = "/debug/xds";
/// Path of the DNS names of the mesh; the name is Istio's.
pub const NAMES: &str = "/debug/ndsz";
const LOG: &str = "/debug/log";
const MERGED: &str = "/stats/prometheus";
const OWN: &str = "/metrics";

#[derive(Clone)]
pub struct LocalServer {
    pub state: Arc<AgentState>,
    pub commands: mpsc::Sender<LocalCommand>,
    pub debug_info: watch::Receiver<DebugInfo>,
    /// URL of Envoy's admin interface; its path is ignored.
    pub admin: HttpUrl,
    pub scraper: Scraper,
    pub log: LogLevelHandle,
    /// `None` if the workload is not probed.
    pub vm: Option<Arc<dyn MachineView>>,
    pub page: StatusPage,
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
            DRAIN | UNDRAIN | QUIT => (Method::POST, "POST"),
            LOG => (Method::PUT, "PUT"),
            PAGE | EVENTS | STATE | BOOTSTRAP | HEALTH | XDS | NAMES | MERGED | OWN => (Method::GET, "GET"),
            _ => return not_found(),
        };
        if request.method != method {
            return not_allowed(allow);
        }
        match request.path() {
            PAGE => self.page.html().await,
            EVENTS => self.events(&request),
            DRAIN => {
                self.state.apply(Observation::Draining);
                let response = self.command(LocalCommand::Drain).await;
                if let Some(wait) = wait(request.query()) {
                    request.slot.release();
                    self.wait_until_unused(wait).await;
                }
                response
            }
            UNDRAIN => self.undrain().await,
            QUIT => {
                info!("quit requested by POST /quitquitquit");
                self.command(LocalCommand::Quit).await
            }
            STATE => {
                let now = self.state.now();
                let mut state = self.state.with_readiness(|ready| ready.detailed(now));
                if let Some(FilterChoice { form, reason }) = self.debug_info.borrow().filter {
                    state["filter"] = serde_json::json!({"form": form.word(), "reason": reason.word()});
                }
                json(StatusCode::OK, format!("{state:#}\n").into())
            }
            BOOTSTRAP => match &self.debug_info.borrow().bootstrap {
                Some(bootstrap) => json(StatusCode::OK, bootstrap.as_bytes().to_vec().into()),
                None => text(StatusCode::NOT_FOUND, "no bootstrap was rendered\n"),
            },
            HEALTH => match self.vm.as_ref().and_then(|vm| vm.health_json()) {
                Some(view) => json(StatusCode::OK, view),
                None => text(StatusCode::NOT_FOUND, "no workload is probed\n"),
            },
            XDS => match self.vm.as_ref().and_then(|vm| vm.xds_json()) {
                Some(view) => json(StatusCode::OK, view),
                None => text(StatusCode::NOT_FOUND, "the agent does not proxy xDS\n"),
            },
            NAMES => match self.vm.as_ref().and_then(|vm| vm.names_json()) {
                Some(view) => json(StatusCode::OK, view),
                None => text(StatusCode::NOT_FOUND, "no DNS queries are answered\n"),
            },
            MERGED => {
                let slot = request.slot.clone();
                self.scraper.merged(&request.headers, request.query(), move || slot.evict()).await
            }
            OWN => self.scraper.own(),
            _ => self.log_level(request.query()),
        }
    }

    fn events(&self, request: &HttpRequest) -> Response {
        if !is_same_origin(&request.headers) {
            return text(StatusCode::FORBIDDEN, "not for pages of other sites\n");
        }
        // The page limits its streams, which would otherwise take the connections of other requests.
        request.slot.release();
        self.page.events()
    }

    async fn command(&self, command: LocalCommand) -> Response {
        match self.commands.send(command).await {
            Ok(()) => text(StatusCode::OK, "OK"),
            Err(_) => text(StatusCode::SERVICE_UNAVAILABLE, "terminating\n"),
        }
    }

    async fn undrain(&self) -> Response {
        let (response, received) = oneshot::channel();
        match (self.commands.send(LocalCommand::Undrain(response)).await, received.await) {
            (Ok(()), Ok(true)) => text(StatusCode::OK, "OK"),
            _ => text(StatusCode::CONFLICT, "terminating\n"),
        }
    }

    /// Returns when the application has no open connections, when the time is over, or when the
    /// agent terminates. Without statistics it waits for the full time.
    async fn wait_until_unused(&self, wait: Duration) {
        let unused = async {
            while admin_client::open_connections(&self.admin, &self.state.drain_plan(), COUNT).await
                != Some(0)
            {
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
