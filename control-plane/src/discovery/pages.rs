//! What port 15014 says of discovery: the operator's view, and readiness with what is degraded.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use hyper::body::Body;
use hyper::{Method, Request, StatusCode};
use serde::Serialize;
use tokio::sync::watch;

use crate::discovery::entries::WorkloadView;
use crate::discovery::metrics::Metrics;
use crate::discovery::registry::Handle;
use crate::discovery::server::{ClientView, Shared};
use crate::monitoring::{self, Pending};
use crate::server::{Response, not_allowed, response, text};

const WORKLOADS: &str = "/debug/workloads";

/// What the pages are made from.
#[derive(Clone)]
pub struct Pages {
    /// `--debug-any`.
    pub debug_any: bool,
    /// Of this process.
    pub instance: Arc<str>,
    /// `redb` or `kubernetes`.
    pub store: &'static str,
    /// Whether somebody is served who proves nothing.
    pub plaintext: bool,
    /// Entries.
    pub registry: Handle,
    /// Clients.
    pub shared: Arc<Shared>,
    /// What is wrong in the configuration.
    pub config_errors: watch::Receiver<Vec<String>>,
    /// Why nothing can be stored.
    pub store_degraded: watch::Receiver<Option<String>>,
    /// What is awaited.
    pub pending: Pending,
    /// Of the process.
    pub metrics: Arc<Metrics>,
}

/// The operator's view.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct View<'a> {
    instance: &'a str,
    store: &'a str,
    settling: bool,
    degraded: Vec<String>,
    config_errors: Vec<String>,
    workloads: Vec<WorkloadView>,
    clients: Vec<ClientView>,
}

/// What is asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Filter {
    namespace: Option<String>,
    group: Option<String>,
    state: Option<String>,
}

impl Pages {
    /// Answers one request.
    pub async fn answer<B: Body>(self, request: Request<B>, peer: SocketAddr) -> Response {
        match request.uri().path() {
            WORKLOADS => self.workloads(&request, peer).await,
            "/metrics" => {
                self.count().await;
                monitoring::answer(&request, &self.pending, || self.metrics.text())
            }
            "/healthz/ready" if self.pending.reasons().is_empty() && request.method() == Method::GET => {
                let lines = std::iter::once("ready".to_owned()).chain(self.degraded());
                text(StatusCode::OK, &lines.collect::<Vec<_>>().join("\n"))
            }
            _ => monitoring::answer(&request, &self.pending, String::new),
        }
    }

    /// What does not keep it from serving.
    fn degraded(&self) -> Vec<String> {
        let store = self.store_degraded.borrow().clone().map(|error| format!("degraded: store: {error}"));
        let errors = self.config_errors.borrow().len();
        let config = (errors > 0).then(|| format!("degraded: configuration: {errors} errors"));
        let plaintext = self.plaintext.then(|| "degraded: plaintext on an address that is not loopback".to_owned());
        config.into_iter().chain(plaintext).chain(store).collect()
    }

    async fn workloads<B: Body>(&self, request: &Request<B>, peer: SocketAddr) -> Response {
        if !self.debug_any && !peer.ip().to_canonical().is_loopback() {
            return text(StatusCode::FORBIDDEN, "only from this machine, see --debug-any");
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return not_allowed("GET, HEAD");
        }
        let filter = match Filter::parse(request.uri().query().unwrap_or_default()) {
            Ok(filter) => filter,
            Err(name) => return text(StatusCode::BAD_REQUEST, &format!("unknown parameter {name:?}")),
        };
        let workloads = self.registry.view().await;
        let view = View {
            instance: &self.instance,
            store: self.store,
            settling: self.registry.snapshots().borrow().settling(),
            degraded: self.degraded(),
            config_errors: self.config_errors.borrow().clone(),
            workloads: workloads.into_iter().filter(|workload| filter.takes(workload)).collect(),
            clients: self.shared.clients(),
        };
        let body = serde_json::to_vec(&view).expect("the view is JSON");
        response(StatusCode::OK, "application/json", Bytes::from(body))
    }

    /// Brings the gauges of the entries up to date.
    async fn count(&self) {
        let workloads = self.registry.view().await;
        for state in ["True", "False", "Unknown", "none"] {
            self.metrics.entries(state, workloads.iter().filter(|workload| status(workload) == state).count());
        }
        let snapshot = self.registry.snapshots().borrow().clone();
        self.metrics.last_endpoint_kept(snapshot.kept().len());
        self.metrics.settling(snapshot.settling());
        self.metrics.config_errors(self.config_errors.borrow().len());
    }
}

fn status(workload: &WorkloadView) -> &str {
    workload.condition.as_ref().map_or("none", |condition| &condition.status)
}

impl Filter {
    /// `namespace=shop&state=False`; an unknown name is given back.
    fn parse(query: &str) -> Result<Self, String> {
        let mut filter = Self::default();
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let place = match name {
                "namespace" => &mut filter.namespace,
                "group" => &mut filter.group,
                "state" => &mut filter.state,
                _ => return Err(probe::health_report::printable(name)),
            };
            *place = Some(value.to_owned()).filter(|value| !value.is_empty());
        }
        Ok(filter)
    }

    fn takes(&self, workload: &WorkloadView) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found.is_some_and(|found| wanted.eq_ignore_ascii_case(found)))
        };
        is(&self.namespace, Some(&workload.namespace))
            && is(&self.group, workload.group.as_deref())
            && is(&self.state, Some(status(workload)))
    }
}
