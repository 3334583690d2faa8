//! A scripted agent: one stream of the real one's, hello and acknowledgements, a state that is said again where a new session asks for it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use app_health_agent::address::Endpoint;
use app_health_agent::args::Xds;
use app_health_agent::config::DiscoveryServer;
use app_health_agent::report::connection::{self, Connection};
use app_health_agent::report::tls::San;
use app_health_agent::report::xds::{self, Node, Request, Response};
use hyper::http::uri::Scheme;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;
use workload_health::health_report::HealthReport;
use workload_health::{Hello, State};

use super::NAMESPACE;

/// Messages that wait, in each direction.
const QUEUE: usize = 8;

#[derive(Clone, Default)]
struct Seen {
    session: u64,
    acknowledged: Option<u64>,
    closed: Option<String>,
}

/// Closed when it is dropped.
pub(crate) struct Agent {
    reports: mpsc::UnboundedSender<bool>,
    generation: AtomicU64,
    seen: Arc<Mutex<Seen>>,
}

static EPOCHS: AtomicU64 = AtomicU64::new(1);

impl Agent {
    pub(super) fn start(runtime: &Runtime, address: SocketAddr, group: &str, entry: &str, ip: &str) -> Self {
        let (reports, received) = mpsc::unbounded_channel();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let mut metadata = json!({
            "NAMESPACE": NAMESPACE, "SERVICE_ACCOUNT": "default", "INSTANCE_IPS": ip, "APP_HEALTH": {"version": 1},
        });
        match group {
            "" => metadata["WORKLOAD_ENTRY"] = entry.into(),
            group => metadata["AUTO_REGISTER_GROUP"] = group.into(),
        }
        let id = format!("sidecar~{ip}~vm.{NAMESPACE}~{NAMESPACE}.svc.cluster.local");
        let first = Request::First(Box::new(Node { id: id.clone(), locality: None, metadata }));
        let epoch = format!("e{}", EPOCHS.fetch_add(1, Ordering::Relaxed));
        let task = Task { epoch, id, generation: 0, is_healthy: false, seen: seen.clone() };
        runtime.spawn(task.run(address, first, received));
        Self { reports, generation: AtomicU64::new(0), seen }
    }

    /// Reports a flip: its generation.
    pub(crate) fn report(&self, is_healthy: bool) -> u64 {
        // A stream that the server has ended says nothing any more.
        let _ = self.reports.send(is_healthy);
        self.generation.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn seen(&self) -> Seen {
        self.seen.lock().expect("no panic").clone()
    }

    pub(crate) fn session(&self) -> u64 {
        self.seen().session
    }

    /// The newest generation that is stored.
    pub(crate) fn acknowledged(&self) -> Option<u64> {
        self.seen().acknowledged
    }

    /// Why the server ended the stream.
    pub(crate) fn closed(&self) -> Option<String> {
        self.seen().closed
    }

    pub(crate) fn close(self) {}
}

struct Task {
    epoch: String,
    id: String,
    generation: u64,
    is_healthy: bool,
    seen: Arc<Mutex<Seen>>,
}

impl Task {
    async fn run(mut self, address: SocketAddr, first: Request, mut reports: mpsc::UnboundedReceiver<bool>) {
        let (requests, sent) = mpsc::channel(QUEUE);
        let (heard, mut responses) = mpsc::channel(QUEUE);
        let connection = connect(address).await;
        let _stream =
            AbortOnDropHandle::new(tokio::spawn(xds::run_stream(connection, Xds::Sotw, sent, heard)));
        let mut next = vec![first];
        loop {
            for request in next.drain(..) {
                // Of a stream that has ended, the end is heard.
                let _ = requests.send(request).await;
            }
            tokio::select! {
                response = responses.recv() => match response.expect("the end is told") {
                    Response::Ended { why, .. } => {
                        self.seen.lock().expect("no panic").closed = Some(why);
                        return;
                    }
                    response => next = self.answered(response),
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

    /// What is said to that.
    fn answered(&self, response: Response) -> Vec<Request> {
        let mut seen = self.seen.lock().expect("no panic");
        match response {
            Response::Hello { version, nonce, content } => {
                let Hello { session, .. } = Hello::parse(&content.expect("one resource")).expect("a hello");
                let is_asked = session != seen.session && self.generation > 0;
                seen.session = session;
                let acknowledgement = Request::AckOrNack { version, nonce, nack_reason: None };
                [acknowledgement].into_iter().chain(is_asked.then(|| self.report())).collect()
            }
            Response::Acknowledged(version) => {
                let generation = version.strip_prefix(&format!("{}/", self.epoch));
                seen.acknowledged = generation.and_then(|generation| generation.parse().ok());
                Vec::new()
            }
            Response::Ended { .. } => Vec::new(),
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
        let error = (!self.is_healthy).then(|| report.message.clone());
        Request::Report { error, extension: Some(Box::new((self.id.clone(), report.to_json()))) }
    }
}

/// In plaintext.
async fn connect(address: SocketAddr) -> Connection {
    let server = DiscoveryServer {
        authority: address.to_string(),
        endpoint: Endpoint::Ip(address),
        san: San::new("discovery", "discovery").expect("a DNS name"),
    };
    let tcp = TcpStream::connect(address).await.expect("a replica that listens");
    connection::handshake(tcp, address, &server, Scheme::HTTP).await.expect("HTTP/2")
}
