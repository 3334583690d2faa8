//! One agent of a fleet: a minimal transport around the agent's real [`Reporter`].

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use app_health_agent::address::Endpoint;
use app_health_agent::args::Xds;
use app_health_agent::vm::report::DiscoveryServer;
use app_health_agent::vm::report::connection::{self, Connection};
use app_health_agent::vm::report::tls::San;
use app_health_agent::vm::report::xds::{self, Node, Request, Response};
use hyper::http::uri::Scheme;
use rustls::ClientConfig;
use serde_json::json;
use tokio::net::TcpSocket;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tokio_util::task::AbortOnDropHandle;
use workload_health::health_report::{
    APP_HEALTH, AUTO_REGISTER_GROUP, INSTANCE_IPS, NAMESPACE as NAMESPACE_KEY, PROTOCOL_VERSION,
    SERVICE_ACCOUNT,
};
use workload_health::reporter::{Disconnect, Effect, HealthStatus, Input, Reporter, ReporterSettings};
use workload_health::{HealthReason, Hello, State};

use super::super::certificates::DISCOVERY_NAME;
use super::documents::{ACCOUNTS, NAMESPACE, account, name};
use super::{FleetSettings, FleetStats, address};

/// Separate limits for connecting and for the handshake, as in the agent.
const LIMIT: Duration = Duration::from_secs(5);
/// Capacity of the queue of messages in each direction.
const QUEUE: usize = 8;

/// The settings of an agent before its start.
pub(super) struct SimulatedAgent {
    number: u32,
    ip: IpAddr,
    service: u32,
    server: DiscoveryServer,
    peer: SocketAddr,
    tls: Option<Arc<ClientConfig>>,
    heartbeat: Duration,
    health: watch::Receiver<bool>,
    stats: Arc<FleetStats>,
    random: u64,
}

/// A stream, closed on drop.
struct Stream {
    requests: mpsc::Sender<Request>,
    responses: mpsc::Receiver<Response>,
    _task: AbortOnDropHandle<()>,
}

impl SimulatedAgent {
    pub(super) fn new(
        number: u32,
        settings: &FleetSettings,
        health: watch::Receiver<bool>,
        stats: Arc<FleetStats>,
    ) -> Self {
        let service = number % settings.services;
        Self {
            number,
            ip: address(number),
            service,
            server: DiscoveryServer {
                authority: settings.server.to_string(),
                endpoint: Endpoint::Ip(settings.server),
                san: San::new(DISCOVERY_NAME, DISCOVERY_NAME).expect("a DNS name"),
            },
            peer: settings.server,
            tls: settings.tls.get(account(service)).cloned(),
            heartbeat: settings.heartbeat,
            health,
            stats,
            random: u64::from(number) + 1,
        }
    }

    /// Runs the agent; it ends when the future is dropped.
    pub(super) async fn run(mut self) {
        let start = Instant::now();
        let mut generation = 1;
        let mut healthy = *self.health.borrow_and_update();
        let mut since = Duration::ZERO;
        let settings = ReporterSettings {
            epoch: format!("{:032x}", self.number),
            heartbeat: self.heartbeat,
            istio_heartbeat: None,
            final_report_timeout: Duration::from_secs(2),
            is_proxied: false,
        };
        let mut reporter = Reporter::new(settings, level(generation, healthy, since, since));
        let mut stream: Option<Stream> = None;
        let mut inputs = VecDeque::from([Input::Tick]);
        loop {
            while let Some(input) = inputs.pop_front() {
                let mut random = self.random;
                let effects = reporter.step(start.elapsed(), input, &mut || next(&mut random));
                self.random = random;
                for effect in effects {
                    self.apply(effect, &mut stream, &mut inputs).await;
                }
            }
            let due = reporter.next_due().map(|due| start + due);
            tokio::select! {
                response = next_response(&mut stream) => inputs.extend(self.on_response(response, &mut stream)),
                changed = self.health.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    healthy = *self.health.borrow_and_update();
                    generation += 1;
                    since = start.elapsed();
                    inputs.push_back(Input::Status(level(generation, healthy, since, since)));
                }
                () = tokio::time::sleep_until(due.unwrap_or(start)), if due.is_some() => {
                    // The probes continued while no stream was open.
                    inputs.push_back(Input::Status(level(generation, healthy, since, start.elapsed())));
                }
            }
        }
    }

    async fn apply(&mut self, effect: Effect, stream: &mut Option<Stream>, inputs: &mut VecDeque<Input>) {
        match effect {
            Effect::Connect => inputs.push_back(self.connect(stream).await),
            Effect::Send(report, _) => inputs.extend(self.send(stream, Request::report(report, &self.id()))),
            Effect::ValidateProbe { stream, version, nonce, .. } => {
                inputs.push_back(Input::Validated { stream, version, nonce, result: Ok(()) });
            }
            Effect::AckOrNack { version, nonce, nack_reason } => {
                inputs.extend(self.send(stream, Request::AckOrNack { version, nonce, nack_reason }));
            }
            Effect::NothingToReport => {}
            Effect::HalfClose | Effect::Close | Effect::Done => {
                *stream = None;
                self.stats.lost(self.number, "closed by the agent".to_owned());
            }
        }
    }

    async fn connect(&mut self, stream: &mut Option<Stream>) -> Input {
        self.stats.attempt();
        match self.dial().await {
            Ok(connection) => {
                self.stats.connected();
                let (requests, sent) = mpsc::channel(QUEUE);
                let (responses_sender, responses) = mpsc::channel(QUEUE);
                requests.try_send(Request::First(Box::new(self.node()))).expect("an empty queue has room");
                let task = tokio::spawn(xds::run_stream(connection, Xds::Sotw, sent, responses_sender));
                *stream = Some(Stream { requests, responses, _task: AbortOnDropHandle::new(task) });
                Input::Opened
            }
            Err(why) => {
                self.stats.lost(self.number, why);
                Input::Disconnected(Disconnect::Transient)
            }
        }
    }

    async fn dial(&self) -> Result<Connection, String> {
        let socket = TcpSocket::new_v4().map_err(|error| error.to_string())?;
        socket.bind((self.ip, 0).into()).map_err(|error| error.to_string())?;
        let connected = timeout(LIMIT, socket.connect(self.peer)).await;
        let tcp = connected.map_err(|_| "no connection within 5 s")?.map_err(|error| error.to_string())?;
        tcp.set_nodelay(true).map_err(|error| error.to_string())?;
        let Some(tls) = &self.tls else {
            return connection::handshake(tcp, self.peer, &self.server, Scheme::HTTP).await;
        };
        let shaken = TlsConnector::from(Arc::clone(tls)).connect(self.server.san.server_name(), tcp);
        let tls = timeout(LIMIT, Box::pin(shaken)).await.map_err(|_| "no TLS handshake within 5 s")?;
        let tls = tls.map_err(|error| format!("TLS handshake: {error}"))?;
        connection::handshake(tls, self.peer, &self.server, Scheme::HTTPS).await
    }

    /// Sends a request. If the queue is full, the server does not read and the connection counts as
    /// lost; the end of a stream is reported separately.
    fn send(&self, stream: &mut Option<Stream>, request: Request) -> Option<Input> {
        match stream.as_ref()?.requests.try_send(request) {
            Ok(()) | Err(TrySendError::Closed(_)) => None,
            Err(TrySendError::Full(_)) => {
                *stream = None;
                self.stats.lost(self.number, "the server does not read".to_owned());
                Some(Input::Disconnected(Disconnect::Transient))
            }
        }
    }

    fn on_response(&self, response: Response, stream: &mut Option<Stream>) -> Option<Input> {
        match response {
            Response::Acknowledged(version) => {
                self.stats.acknowledge(self.number);
                Some(Input::Acknowledged(version))
            }
            Response::Hello { version, nonce, content } => {
                match content.and_then(|content| Hello::parse(&content)) {
                    Ok(hello) => Some(Input::Hello { hello, version, nonce }),
                    Err(text) => Some(Input::Malformed { text, nonce }),
                }
            }
            Response::Ended { rejected, why } => {
                *stream = None;
                self.stats.lost(self.number, why);
                Some(Input::Disconnected(if rejected { Disconnect::Rejected } else { Disconnect::Transient }))
            }
        }
    }

    fn id(&self) -> String {
        format!("sidecar~{}~machine-{}.{NAMESPACE}~{NAMESPACE}.svc.cluster.local", self.ip, self.number)
    }

    fn node(&self) -> Node {
        let metadata = json!({
            NAMESPACE_KEY: NAMESPACE,
            SERVICE_ACCOUNT: ACCOUNTS[account(self.service)],
            INSTANCE_IPS: self.ip.to_string(),
            AUTO_REGISTER_GROUP: name(self.service),
            APP_HEALTH: { "version": PROTOCOL_VERSION },
        });
        Node { id: self.id(), locality: None, metadata }
    }
}

/// Returns the next response of the server; never completes without a stream.
async fn next_response(stream: &mut Option<Stream>) -> Response {
    match stream {
        Some(stream) => stream
            .responses
            .recv()
            .await
            .unwrap_or_else(|| Response::Ended { rejected: false, why: "the stream ended".to_owned() }),
        None => std::future::pending().await,
    }
}

fn level(generation: u64, healthy: bool, since: Duration, last_probe: Duration) -> HealthStatus {
    let (state, reason, message) = match healthy {
        true => (State::Healthy, HealthReason::ProbeSucceeded, String::new()),
        false => (State::Unhealthy, HealthReason::HttpStatus, "HTTP status 503".to_owned()),
    };
    HealthStatus {
        generation,
        state,
        reason,
        message,
        since,
        last_probe: Some(last_probe),
        interval: None,
        verdict_due: None,
    }
}

/// Returns pseudo-random numbers in 0..1 (splitmix64).
fn next(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let high = (mixed ^ (mixed >> 31)) >> 32;
    f64::from(u32::try_from(high).expect("32 bits")) / 2f64.powi(32)
}
