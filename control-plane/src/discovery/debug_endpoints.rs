//! HTTP handlers of the monitoring port: `/debug/workloads`, and readiness with the list of
//! degradations.

use std::sync::Arc;

use bytes::Bytes;
use hyper::StatusCode;

use crate::discovery::metrics::Metrics;
use crate::discovery::registry::Handle;
use crate::discovery::server::Shared;
use crate::monitoring::{self, Pending};
use discovery::view::{Filter, WorkloadsResponse};
use serving::http_server::{HttpRequest, Response, json, not_allowed, text};
use workload_health::health_report::printable;

const WORKLOADS: &str = "/debug/workloads";
const READY: &str = "/healthz/ready";

/// State of the monitoring handlers.
#[derive(Clone)]
pub struct MonitoringHandlers {
    pub debug_any: bool,
    /// Name of this instance.
    pub instance: String,
    pub store: &'static str,
    /// True if the plaintext listener is on an address that is not loopback.
    pub insecure: bool,
    /// Readiness conditions that are not yet met.
    pub pending: Pending,
    pub metrics: Arc<Metrics>,
}

/// Registry and server state; `None` until store and configuration are loaded.
pub type Loaded = Option<(Handle, Arc<Shared>)>;

impl MonitoringHandlers {
    /// Handles a request to the monitoring port.
    pub async fn handle(self, request: HttpRequest, loaded: Loaded) -> Response {
        match (request.path(), loaded) {
            (WORKLOADS, loaded) => self.workloads(&request, loaded).await,
            (READY, Some((registry, _))) if self.pending.reasons().is_empty() => {
                self.ready(&request, &registry)
            }
            _ => monitoring::answer(&request, &self.pending, || self.metrics.text()),
        }
    }

    fn ready(&self, request: &HttpRequest, registry: &Handle) -> Response {
        if !request.is_read() {
            return not_allowed("GET, HEAD");
        }
        let insecure =
            self.insecure.then(|| "plaintext listener on an address that is not loopback".to_owned());
        let degraded = registry.degradations().into_iter().chain(insecure);
        let lines: String = degraded.map(|line| format!("\ndegraded: {line}")).collect();
        text(StatusCode::OK, format!("ready{lines}\n"))
    }

    async fn workloads(&self, request: &HttpRequest, loaded: Loaded) -> Response {
        if !self.debug_any && !request.peer.is_local() {
            return text(
                StatusCode::FORBIDDEN,
                "only available from this machine; --debug-allow-remote allows all addresses\n",
            );
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
            workloads: overview.workloads.into_iter().filter(|workload| filter.matches(workload)).collect(),
            clients: shared.clients(),
        };
        let body = serde_json::to_vec(&view).expect("the view is JSON");
        json(StatusCode::OK, Bytes::from(body))
    }
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
