//! A scripted agent with one stream of the real protocol. It acknowledges the configuration, and
//! repeats its last report when the server starts a new session.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use address::Endpoint;
use hyper::body::Bytes;
use hyper::http::uri::Scheme;
use serde_json::json;
use serving::grpc;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use workload_health::health_report::{APP_HEALTH_REPORT, HealthReport};
use workload_health::{Hello, State};
use xds::health::{self, HealthResponse};
use xds::{Node, Request, Response, Variant};
use xds_client::DiscoveryServer;
use xds_client::connection::{self, Connection};
use xds_client::tls::San;
use xds_client::upstream::{ALONE_LIMITS, OpenStream};

use super::NAMESPACE;

#[derive(Clone, Default)]
struct AgentState {
    session: u64,
    acknowledged: Option<u64>,
    closed: Option<String>,
}

/// An agent whose stream is closed on drop.
pub(crate) struct Agent {
    reports: mpsc::UnboundedSender<bool>,
    generation: AtomicU64,
    state: Arc<Mutex<AgentState>>,
}

static EPOCHS: AtomicU64 = AtomicU64::new(1);

impl Agent {
    pub(super) fn start(runtime: &Runtime, address: SocketAddr, group: &str, entry: &str, ip: &str) -> Self {
        let (reports, received) = mpsc::unbounded_channel();
        let state = Arc::new(Mutex::new(AgentState::default()));
        let mut metadata = json!({
            "NAMESPACE": NAMESPACE, "SERVICE_ACCOUNT": "default", "INSTANCE_IPS": ip, "APP_HEALTH": {"version": 1},
        });
        match group {
            "" => metadata["WORKLOAD_ENTRY"] = entry.into(),
            group => metadata["AUTO_REGISTER_GROUP"] = group.into(),
        }
        let id = format!("sidecar~{ip}~vm.{NAMESPACE}~{NAMESPACE}.svc.cluster.local");
        let (program, version) = ("app-health-agent".to_owned(), "0.0.0".to_owned());
        let node = Node { id: id.clone(), locality: None, metadata, program, version };
        let first = health::first_request(node.encode());
        let epoch = format!("e{}", EPOCHS.fetch_add(1, Ordering::Relaxed));
        let task = Task { epoch, id, generation: 0, is_healthy: false, state: state.clone() };
        runtime.spawn(task.run(address, first, received));
        Self { reports, generation: AtomicU64::new(0), state }
    }

    /// Reports a change of the health, and returns its generation.
    pub(crate) fn report(&self, is_healthy: bool) -> u64 {
        // The task has ended if the server ended the stream.
        let _ = self.reports.send(is_healthy);
        self.generation.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn state(&self) -> AgentState {
        self.state.lock().expect("no holder of the lock panicked").clone()
    }

    pub(crate) fn session(&self) -> u64 {
        self.state().session
    }

    /// Returns the newest generation that the server has acknowledged as stored.
    pub(crate) fn acknowledged(&self) -> Option<u64> {
        self.state().acknowledged
    }

    /// Returns the reason with which the server ended the stream, if it did.
    pub(crate) fn closed(&self) -> Option<String> {
        self.state().closed
    }

    pub(crate) fn close(self) {}
}

struct Task {
    epoch: String,
    id: String,
    generation: u64,
    is_healthy: bool,
    state: Arc<Mutex<AgentState>>,
}

impl Task {
    async fn run(mut self, address: SocketAddr, first: Request, mut reports: mpsc::UnboundedReceiver<bool>) {
        let mut stream = OpenStream::new(connect(address).await, Variant::Sotw, ALONE_LIMITS);
        let requests = stream.requests().expect("an open stream");
        let mut next = vec![first];
        loop {
            for request in next.drain(..) {
                let message = grpc::parts(request.encode(Variant::Sotw), Bytes::new());
                // If the stream has ended, the loop receives its status next.
                let _ = requests.send(Ok(message)).await;
            }
            tokio::select! {
                response = stream.next() => match response {
                    Ok(message) => {
                        let response = Response::parse(&message, Variant::Sotw).expect("a response");
                        next = HealthResponse::new(&response).map_or_else(Vec::new, |it| self.handle(it));
                    }
                    Err(status) => {
                        let why = format!("{:?}: {}", status.code(), status.message());
                        self.state.lock().expect("no holder of the lock panicked").closed = Some(why);
                        return;
                    }
                },
                report = reports.recv() => {
                    let Some(is_healthy) = report else { return };
                    self.is_healthy = is_healthy;
                    self.generation += 1;
                    next = vec![self.report()];
                }
            }
        }
    }

    /// Returns the requests with which the agent answers a response.
    fn handle(&self, response: HealthResponse) -> Vec<Request> {
        let mut state = self.state.lock().expect("no holder of the lock panicked");
        match response {
            HealthResponse::Hello { version, nonce, content } => {
                let Hello { session, .. } = Hello::parse(&content.expect("one resource")).expect("a hello");
                let is_asked = session != state.session && self.generation > 0;
                state.session = session;
                let acknowledgement = health::ack_or_nack(version, nonce, None);
                [acknowledgement].into_iter().chain(is_asked.then(|| self.report())).collect()
            }
            HealthResponse::Acknowledged(version) => {
                let generation = version.strip_prefix(&format!("{}/", self.epoch));
                state.acknowledged = generation.and_then(|generation| generation.parse().ok());
                Vec::new()
            }
        }
    }

    fn report(&self) -> Request {
        let report = HealthReport {
            epoch: self.epoch.clone(),
            generation: self.generation,
            state: if self.is_healthy { State::Healthy } else { State::Unhealthy },
            reason: if self.is_healthy { "ProbeSucceeded" } else { "HttpStatus" }.to_owned(),
            message: if self.is_healthy { "" } else { "HTTP status 503" }.to_owned(),
            since_ms: 0,
            last_probe_ago_ms: Some(0),
            interval_ms: None,
            verdict_within_ms: None,
        };
        let metadata = json!({ APP_HEALTH_REPORT: report.to_json() });
        let node = Node { id: self.id.clone(), metadata, ..Node::default() };
        health::report((!self.is_healthy).then_some(&*report.message), Some(node.encode_identity()))
    }
}

/// Connects in plaintext.
async fn connect(address: SocketAddr) -> Connection {
    let server = DiscoveryServer {
        authority: address.to_string(),
        endpoint: Endpoint::Ip(address),
        san: San::new("discovery", "discovery").expect("a DNS name"),
    };
    let tcp = TcpStream::connect(address).await.expect("a replica that listens");
    connection::handshake(tcp, address, &server, Scheme::HTTP).await.expect("HTTP/2")
}
