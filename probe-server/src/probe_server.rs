//! Answers a request for a probe: it is admitted as in the filter, runs against the application, and its
//! result becomes a status.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, TRANSFER_ENCODING, USER_AGENT};
use hyper::{HeaderMap, Method, StatusCode};
use probe::Reason;
use probe::path::PREFIXES;
use probe::permits::{Permit, Permits};
use probe::user_agent::user_agent;
use prober::{Client, Ended, HttpProbe, grpc_check, http_get, tcp_socket};
use prometheus_client::registry::Registry;
use serving::http_server::{Body, HttpRequest, Response};
use tokio::time::Instant;

use crate::clients;
use crate::declared::{Action, DeclaredProbe, DeclaredProbes};
use crate::probe_metrics::ProbeMetrics;
use crate::results::{Results, lock};

/// Answers requests for probes and hooks; clones answer as one.
#[derive(Clone)]
pub struct ProbeServer(Arc<Parts>);

struct Parts {
    probes: DeclaredProbes,
    results: Results,
    client: Client,
}

/// How a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// The application's own status.
    Status(u16),
    Reason(Reason),
    /// A status, and a body that breaks off.
    Broken(u16),
    /// The connection is reset: kubelet takes any response of a hook for success, and a request that looks
    /// like gRPC must not get a status.
    Reset,
}

impl ProbeServer {
    /// Registers the metrics about probes in `registry`. The node's probes are those of trusted clients.
    pub fn new(probes: DeclaredProbes, registry: &mut Registry) -> Self {
        let metrics = ProbeMetrics::registered(registry);
        let results = Results::new(metrics, probes.paths());
        Self(Arc::new(Parts { probes, results, client: Client::default() }))
    }

    /// True for the paths that are answered here, which include all that no probe has.
    pub fn has_path(path: &str) -> bool {
        PREFIXES.iter().any(|prefix| path.starts_with(prefix))
    }

    pub async fn answer(self, request: HttpRequest) -> Response {
        let slot = request.slot.clone();
        match self.0.answer_to(&request).await {
            Answer::Status(status) => response(status, Bytes::new().into()),
            Answer::Reason(reason) => response(reason.status(), Bytes::from(reason.body()).into()),
            Answer::Broken(status) => response(status, Body::broken()),
            Answer::Reset => {
                slot.evict();
                std::future::pending().await
            }
        }
    }
}

impl Parts {
    async fn answer_to(&self, request: &HttpRequest) -> Answer {
        let Some(probe) = self.probes.get(request.path()) else {
            self.results.unknown_probe();
            return if is_grpc(&request.headers) {
                Answer::Reset
            } else {
                Answer::Reason(Reason::UnknownProbe)
            };
        };
        let client = clients::ip(request.peer);
        let is_hook = probe.path.kind().is_hook();
        let reject = |reason| {
            self.results.record(probe, reason);
            Answer::Reason(reason)
        };
        if is_grpc(&request.headers) {
            self.results.record(probe, Reason::BadRequest);
            return Answer::Reset;
        }
        if request.method != Method::GET {
            return reject(Reason::Method);
        }
        if has_body(&request.headers) {
            return reject(Reason::BadRequest);
        }
        if is_hook && !self.probes.hook_callers.allow(client) {
            let client = client.map(|client| client.to_string()).unwrap_or_default();
            self.results.refuse_hook(probe, &client);
            return Answer::Reset;
        }
        let Some(_permit) = InFlight::begin(probe, request.is_trusted, client) else {
            self.results.record(probe, Reason::Busy);
            return if is_hook { Answer::Reset } else { Answer::Reason(Reason::Busy) };
        };
        let kubelet = request.headers.get(USER_AGENT).map(HeaderValue::as_bytes);
        let ended = self.run(probe, user_agent(kubelet, probe.path.kind())).await;
        let (Ended::Result { reason, .. } | Ended::BrokenBody { reason, .. }) = ended;
        self.results.record(probe, reason);
        answer(ended, is_hook)
    }

    async fn run(&self, probe: &DeclaredProbe, user_agent: &[u8]) -> Ended {
        let target = self.probes.target;
        let timeout = probe.prober.timeout;
        let deadline = Instant::now() + timeout;
        match &probe.action {
            Action::HttpGet(request) => {
                let probe = HttpProbe {
                    client: &self.client,
                    target,
                    pod_ip: &self.probes.pod_ip,
                    proxy_ports: &self.probes.proxy_ports,
                    user_agent,
                };
                http_get(probe, request, deadline).await
            }
            Action::TcpSocket(port) => tcp_socket(target, *port, deadline).await,
            Action::Grpc(grpc) => grpc_check(&self.client, target, grpc, user_agent, timeout, deadline).await,
        }
    }
}

/// kubelet takes any response of a hook as success, whatever its body is.
fn answer(ended: Ended, is_hook: bool) -> Answer {
    match ended {
        Ended::Result { status, reason: Reason::Ok | Reason::Application }
        | Ended::BrokenBody { status, .. }
            if is_hook =>
        {
            Answer::Status(status)
        }
        Ended::Result { status, reason: Reason::Ok | Reason::Application } => Answer::Status(status),
        Ended::Result { reason, .. } if is_hook && !reason.is_success() => Answer::Reset,
        Ended::Result { reason, .. } => Answer::Reason(reason),
        // A response with 204 has no body that could break off.
        Ended::BrokenBody { status: 204, .. } => Answer::Broken(200),
        Ended::BrokenBody { status, .. } => Answer::Broken(status),
    }
}

fn response(status: u16, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}

fn has_body(headers: &HeaderMap) -> bool {
    headers.contains_key(TRANSFER_ENCODING)
        || headers.get(CONTENT_LENGTH).is_some_and(|length| length.as_bytes() != b"0")
}

/// True for a request that Envoy regards as gRPC by its content type, which the filter resets.
fn is_grpc(headers: &HeaderMap) -> bool {
    const GRPC: &[u8] = b"application/grpc";
    let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    content_type
        .is_some_and(|text| text.get(..GRPC.len()).is_some_and(|start| start.eq_ignore_ascii_case(GRPC)))
}

/// A permit for a probe in flight, which is free again when this is dropped.
struct InFlight<'a> {
    permits: &'a Mutex<Permits>,
    permit: Permit,
}

impl<'a> InFlight<'a> {
    fn begin(probe: &'a DeclaredProbe, is_node: bool, client: Option<IpAddr>) -> Option<Self> {
        let permits = &probe.permits[usize::from(is_node)];
        let name = || client.map(|client| client.to_string().into_bytes()).unwrap_or_default();
        let permit = lock(permits).take(name)?;
        Some(Self { permits, permit })
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        lock(self.permits).give_back(&self.permit);
    }
}

#[cfg(test)]
mod tests;
