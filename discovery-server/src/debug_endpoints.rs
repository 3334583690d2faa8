//! HTTP handlers of the monitoring port: the status page, `/debug/workloads`, and readiness with the
//! list of degradations.

use std::sync::Arc;

use bytes::Bytes;
use hyper::{Method, StatusCode};
use tokio::sync::watch;

use crate::metrics::Metrics;
use crate::page::{PageSources, StatusPage};
use crate::registry::Handle;
use crate::server::Shared;
use discovery::entries::Input;
use discovery::objects::Key;
use discovery::view::{Filter, WorkloadsResponse};
use serving::http_server::{HttpRequest, Response, json, not_allowed, text};
use serving::local_request::{CHANGE, has_local_host, is_direct};
use serving::monitoring::{self, Pending, READY};
use serving::page::is_same_origin;
use workload_health::text::printable;

const PAGE: &str = "/";
const EVENTS: &str = "/events";
const WORKLOADS: &str = "/debug/workloads";
/// The last changes of a machine's condition.
const HISTORY: &str = "/debug/workloads/history";
/// Ends the self-preservation of endpoints.
const RELEASE: &str = "/debug/workloads/release";
const ONLY_LOCAL: &str = "only available from this machine; --debug-allow-remote allows all addresses\n";

/// State of the monitoring handlers.
#[derive(Clone)]
pub struct MonitoringHandlers {
    pub debug_allow_remote: bool,
    /// Name of this instance.
    pub instance: String,
    pub store: &'static str,
    /// True if the plaintext listener is on an address that is not loopback.
    pub insecure: bool,
    /// Readiness conditions that are not yet met.
    pub pending: Pending,
    /// Why the configuration cannot be read at the start.
    pub failed_mount: watch::Receiver<Option<String>>,
    pub metrics: Arc<Metrics>,
    pub page: StatusPage,
}

/// Registry and server state; `None` until store and configuration are loaded.
pub type Loaded = Option<(Handle, Arc<Shared>)>;

impl MonitoringHandlers {
    /// Handles a request to the monitoring port.
    pub async fn handle(self, request: HttpRequest, loaded: Loaded) -> Response {
        match (request.path(), loaded) {
            (PAGE | EVENTS | HISTORY, loaded) => self.page(&request, loaded).await,
            (WORKLOADS, loaded) => self.workloads(&request, loaded).await,
            (RELEASE, loaded) => self.release(&request, loaded).await,
            (READY, Some((registry, shared))) if self.pending.reasons().is_empty() => {
                self.ready(&request, &registry, &shared)
            }
            (READY, None) if request.is_read() && self.failed_mount.borrow().is_some() => {
                let error = self.failed_mount.borrow().clone().unwrap_or_default();
                text(StatusCode::SERVICE_UNAVAILABLE, format!("configuration: {error}\n"))
            }
            _ => monitoring::answer(&request, &self.pending, || self.metrics.text()),
        }
    }

    fn ready(&self, request: &HttpRequest, registry: &Handle, shared: &Shared) -> Response {
        if !request.is_read() {
            return not_allowed("GET, HEAD");
        }
        if registry.is_isolated() {
            let reason = "store: API server unreachable, agents must use another replica\n";
            return text(StatusCode::SERVICE_UNAVAILABLE, reason);
        }
        let insecure =
            self.insecure.then(|| "plaintext listener on an address that is not loopback".to_owned());
        let degraded = registry.degradations().into_iter().chain(shared.degradation()).chain(insecure);
        let lines: String = degraded.map(|line| format!("\ndegraded: {line}")).collect();
        text(StatusCode::OK, format!("ready{lines}\n"))
    }

    async fn release(&self, request: &HttpRequest, loaded: Loaded) -> Response {
        if !request.peer.is_local() || !is_direct(&request.headers) {
            return forbidden("only available from this machine\n");
        }
        if request.method != Method::POST {
            return not_allowed("POST");
        }
        if !request.headers.contains_key(CHANGE) {
            return forbidden(
                "the header x-app-health-change is missing: use `app-health workloads release`\n",
            );
        }
        let filter = match filter(request.query()) {
            Ok(filter) if filter.state.is_none() => filter,
            Ok(_) => return text(StatusCode::BAD_REQUEST, "unknown query parameter \"state\"\n"),
            Err(name) => return text(StatusCode::BAD_REQUEST, format!("unknown query parameter {name:?}\n")),
        };
        let Some((registry, _)) = loaded else {
            return text(StatusCode::SERVICE_UNAVAILABLE, self.pending.reasons().join("\n") + "\n");
        };
        let view = registry.view().await;
        let released =
            view.workloads.iter().filter(|workload| workload.self_preserved && filter.matches(workload));
        let released = released.count();
        let Filter { namespace, group, .. } = filter;
        registry.send(Input::Release { namespace, group }).await;
        text(StatusCode::OK, format!("released {released} endpoints in self-preservation\n"))
    }

    fn may_read(&self, request: &HttpRequest) -> bool {
        self.debug_allow_remote || (request.peer.is_local() && has_local_host(&request.headers))
    }

    async fn page(&self, request: &HttpRequest, loaded: Loaded) -> Response {
        if !self.may_read(request) {
            return forbidden(ONLY_LOCAL);
        }
        if request.method != Method::GET {
            return not_allowed("GET");
        }
        let Some((registry, shared)) = loaded else {
            return text(StatusCode::SERVICE_UNAVAILABLE, self.pending.reasons().join("\n") + "\n");
        };
        let sources = PageSources { registry, shared };
        match request.path() {
            PAGE => self.page.html(&sources).await,
            _ if !is_same_origin(&request.headers) => forbidden("not for pages of other sites\n"),
            EVENTS => {
                // The page limits its streams, which would otherwise take the connections of health
                // checks.
                request.slot.release();
                self.page.events(sources)
            }
            _ => match key(request.query()) {
                Some(key) => {
                    let history = sources.registry.history(key).await;
                    let body = serde_json::to_vec(&history).expect("the history is JSON");
                    json(StatusCode::OK, Bytes::from(body))
                }
                None => text(StatusCode::BAD_REQUEST, "the query must be namespace=NAME&name=NAME\n"),
            },
        }
    }

    async fn workloads(&self, request: &HttpRequest, loaded: Loaded) -> Response {
        if !self.may_read(request) {
            return forbidden(ONLY_LOCAL);
        }
        if !request.is_read() {
            return not_allowed("GET, HEAD");
        }
        let filter = match filter(request.query()) {
            Ok(filter) => filter,
            Err(name) => return text(StatusCode::BAD_REQUEST, format!("unknown query parameter {name:?}\n")),
        };
        let Some((registry, shared)) = loaded else {
            return text(StatusCode::SERVICE_UNAVAILABLE, self.pending.reasons().join("\n") + "\n");
        };
        let overview = registry.view().await;
        let view = WorkloadsResponse {
            instance: self.instance.clone(),
            store: self.store,
            startup_grace: overview.startup_grace,
            config_errors: overview.config_errors,
            self_preserving_services: overview.self_preserving_services,
            export_conflicts: overview.export_conflicts,
            outbound_conflicts: overview.outbound_conflicts,
            workloads: overview.workloads.into_iter().filter(|workload| filter.matches(workload)).collect(),
            clients: shared.clients(),
        };
        let body = serde_json::to_vec(&view).expect("the view is JSON");
        json(StatusCode::OK, Bytes::from(body))
    }
}

/// Answers why a request to change something is rejected.
fn forbidden(text_of: &'static str) -> Response {
    text(StatusCode::FORBIDDEN, text_of)
}

/// Parses the query `namespace=shop&name=pay-1`. The names of Kubernetes need no escapes.
fn key(query: &str) -> Option<Key> {
    let (namespace, name) = query.split_once('&')?;
    Some(Key::new(namespace.strip_prefix("namespace=")?, name.strip_prefix("name=")?))
}

/// Parses a query such as `namespace=shop&state=False`. Returns the name of an unknown parameter as
/// the error.
fn filter(query: &str) -> Result<Filter, String> {
    let mut filter = Filter::default();
    for part in query.split('&').filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let place = match name {
            "namespace" => &mut filter.namespace,
            "group" => &mut filter.group,
            "state" => &mut filter.state,
            _ => return Err(printable(name)),
        };
        *place = Some(value.to_owned()).filter(|value| !value.is_empty());
    }
    Ok(filter)
}

#[cfg(test)]
mod tests;
