//! A scripted agent: one ADS stream, our hello and acknowledgements, a state that is said again where a new session asks for it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use envoy_types::pb::envoy::service::discovery::v3::{DiscoveryRequest, DiscoveryResponse};
use envoy_types::pb::google::protobuf::Struct;
use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::rpc::Status;
use probe::State;
use probe::health_report::{APP_HEALTH_REPORT, HEALTH_INFORMATION, HealthReport, PROBE_TYPE};
use prost::Message as _;
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use super::NAMESPACE;
use super::stream::{ENDPOINTS, Stream, node, request};

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
        let first = request(ENDPOINTS, Some(node(&id, &metadata)));
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
    async fn run(
        mut self,
        address: SocketAddr,
        first: DiscoveryRequest,
        mut reports: mpsc::UnboundedReceiver<bool>,
    ) {
        let mut stream = Stream::open(address, first).await.expect("a replica that listens");
        loop {
            tokio::select! {
                answer = stream.next() => match answer {
                    Ok(answer) => self.answered(&stream, &answer),
                    Err(status) => {
                        self.seen.lock().expect("no panic").closed = Some(status.message().to_owned());
                        return;
                    }
                },
                report = reports.recv() => {
                    let Some(is_healthy) = report else { return };
                    self.is_healthy = is_healthy;
                    self.generation += 1;
                    stream.send(self.report());
                }
            }
        }
    }

    fn answered(&self, stream: &Stream, answer: &DiscoveryResponse) {
        let mut seen = self.seen.lock().expect("no panic");
        match answer.type_url.as_str() {
            PROBE_TYPE => {
                let hello = Struct::decode(answer.resources[0].value.as_slice()).expect("a hello");
                let kind = hello.fields.get("session").and_then(|value| value.kind.as_ref());
                let Some(Kind::NumberValue(session)) = kind else { panic!("a session") };
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
                let session = *session as u64;
                let mut acknowledgement = request(PROBE_TYPE, None);
                acknowledgement.version_info.clone_from(&answer.version_info);
                acknowledgement.response_nonce.clone_from(&answer.nonce);
                stream.send(acknowledgement);
                if session != seen.session && self.generation > 0 {
                    stream.send(self.report());
                }
                seen.session = session;
            }
            HEALTH_INFORMATION => {
                let generation = answer.version_info.strip_prefix(&format!("{}/", self.epoch));
                seen.acknowledged = generation.and_then(|generation| generation.parse().ok());
            }
            _ => {}
        }
    }

    fn report(&self) -> DiscoveryRequest {
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
        let node = node(&self.id, &json!({APP_HEALTH_REPORT: report.to_json()}));
        let error = Status { code: 13, message: report.message.clone(), details: Vec::new() };
        DiscoveryRequest {
            error_detail: (!self.is_healthy).then_some(error),
            ..request(HEALTH_INFORMATION, Some(node))
        }
    }
}
