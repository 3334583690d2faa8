//! One agent of a fleet: a minimal transport around the agent's real [`Proxy`], without an Envoy.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use address::Endpoint;
use hyper::body::Bytes;
use hyper::http::uri::Scheme;
use rustls::ClientConfig;
use serde_json::json;
use serving::grpc;
use tokio::net::TcpSocket;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tonic::Status;
use workload_health::health_report::{
    APP_HEALTH, AUTO_REGISTER_GROUP, INSTANCE_IPS, NAMESPACE as NAMESPACE_KEY, PROTOCOL_VERSION,
    SERVICE_ACCOUNT,
};
use workload_health::reporter::{HealthStatus, Reporter, ReporterSettings};
use workload_health::{HealthReason, State, Verdict};
use xds::{Node, Variant};
use xds_client::DiscoveryServer;
use xds_client::connection::{self, Connection};
use xds_client::tls::San;
use xds_client::upstream::{ALONE_LIMITS, OpenStream, is_rejection};
use xds_proxy::{Effect, HealthEvent, Input, Proxy, ProxySettings};

use super::super::certificates::DISCOVERY_NAME;
use super::documents::{ACCOUNTS, NAMESPACE, account, name};
use super::{FleetSettings, FleetStats, address};

/// Separate limits for connecting and for the handshake, as in the agent.
const LIMIT: Duration = Duration::from_secs(5);

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
        let reporter = ReporterSettings {
            epoch: format!("{:032x}", self.number),
            heartbeat: self.heartbeat,
            istio_heartbeat: None,
            final_report_timeout: Duration::from_secs(2),
        };
        let settings = ProxySettings {
            identity: self.id(),
            max_age: None,
            variant: Variant::Sotw,
            serves_envoy: false,
            own_types: Vec::new(),
            refuses_remote_wasm: false,
        };
        let reporter = Reporter::new(reporter, level(generation, healthy, since, since));
        let mut proxy = Proxy::new(settings, reporter, None);
        let mut stream: Option<OpenStream> = None;
        let mut inputs = VecDeque::from([Input::Tick]);
        loop {
            while let Some(input) = inputs.pop_front() {
                let mut random = self.random;
                let effects = proxy.step(start.elapsed(), input, &mut || next(&mut random));
                self.random = random;
                for effect in effects {
                    self.apply(effect, &mut stream, &mut inputs).await;
                }
            }
            let due = proxy.next_due().map(|due| start + due);
            tokio::select! {
                response = next_response(&mut stream) => inputs.push_back(match response {
                    Ok(message) => Input::UpstreamResponse(message),
                    Err(status) => {
                        stream = None;
                        self.closed(is_rejection(&status), status.message().to_owned())
                    }
                }),
                changed = self.health.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    healthy = *self.health.borrow_and_update();
                    generation += 1;
                    since = start.elapsed();
                    inputs.push_back(Input::Health(level(generation, healthy, since, since)));
                }
                () = tokio::time::sleep_until(due.unwrap_or(start)), if due.is_some() => {
                    // The probes continued while no stream was open.
                    inputs.push_back(Input::Health(level(generation, healthy, since, start.elapsed())));
                }
            }
        }
    }

    async fn apply(&mut self, effect: Effect, stream: &mut Option<OpenStream>, inputs: &mut VecDeque<Input>) {
        match effect {
            Effect::Connect => inputs.push_back(self.connect(stream).await),
            Effect::SendUpstream(message) => {
                let requests = stream.as_ref().and_then(OpenStream::requests);
                let message = Ok(grpc::parts(message, Bytes::new()));
                // The end of a stream is reported separately.
                if let Some(Err(TrySendError::Full(_))) = requests.map(|requests| requests.try_send(message))
                {
                    *stream = None;
                    inputs.push_back(self.closed(false, "the server does not read".to_owned()));
                }
            }
            Effect::Health(HealthEvent::ValidateProbe { hello, .. }) => {
                inputs.push_back(Input::ProbeValidated { hello, result: Ok(()) });
            }
            Effect::Health(HealthEvent::Acknowledged(_)) => self.stats.acknowledge(self.number),
            Effect::CloseUpstream | Effect::AbortUpstream(_) => {
                *stream = None;
                self.stats.lost(self.number, "closed by the agent".to_owned());
            }
            _ => {}
        }
    }

    fn closed(&self, is_rejected: bool, reason: String) -> Input {
        self.stats.lost(self.number, reason.clone());
        Input::UpstreamClosed { is_rejected, reason }
    }

    async fn connect(&mut self, stream: &mut Option<OpenStream>) -> Input {
        self.stats.attempt();
        match self.dial().await {
            Ok(connection) => {
                self.stats.connected();
                *stream = Some(OpenStream::new(connection, Variant::Sotw, ALONE_LIMITS));
                Input::UpstreamOpened { node: Box::new(self.node()), server: String::new() }
            }
            Err(why) => self.closed(false, why),
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
        let (program, version) = ("app-health-agent".to_owned(), "0.0.0".to_owned());
        Node { id: self.id(), locality: None, metadata, program, version }
    }
}

/// Returns the next response of the server; never completes without a stream.
async fn next_response(stream: &mut Option<OpenStream>) -> Result<Bytes, Status> {
    match stream {
        Some(stream) => stream.next().await,
        None => std::future::pending().await,
    }
}

fn level(generation: u64, healthy: bool, since: Duration, last_probe: Duration) -> HealthStatus {
    let (state, reason, message) = match healthy {
        true => (State::Healthy, HealthReason::ProbeSucceeded, String::new()),
        false => (State::Unhealthy, HealthReason::HttpStatus, "HTTP status 503".to_owned()),
    };
    HealthStatus {
        verdict: Verdict { state, reason, message, generation },
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
