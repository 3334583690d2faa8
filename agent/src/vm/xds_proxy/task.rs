//! The task that drives the proxy: it turns I/O into inputs, and effects into I/O.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use serving::grpc::{self, Messages, Parts};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tracing::{info, warn};
use workload_health::health_report::printable;
use xds::Variant;
use xds_proxy::{Effect, HealthEvent, Input, Proxy, ProxyView};

use super::EncodeNode;
use super::cache_writer::CacheWriter;
use super::event_log;
use super::server::{NewStream, Responses};
use super::upstream::{UpstreamEvent, UpstreamHandle};
use crate::metrics::Metrics;
use crate::readiness::Phase;
use crate::state::AgentState;
use crate::vm::report::xds::{Request, Response};
use crate::vm::report::{Certificates, HealthLink};

/// Requests that may wait for the control plane before Envoy's next request is read.
const REQUESTS: usize = 16;
/// An Envoy that reads nothing for this long is disconnected.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// A control plane that accepts no request for this long is disconnected, before Envoy, whose
/// acknowledgements wait for it, would be.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(15);
/// How long changes wait until the view shows them.
const PUBLISH_DELAY: Duration = Duration::from_millis(50);

/// The current stream of Envoy.
struct EnvoyStream {
    variant: Variant,
    requests: Messages<Incoming>,
    responses: Responses,
}

/// What the task needs from the other parts of the agent.
pub(super) struct Surroundings {
    pub(super) certificates: Certificates,
    /// `None` if the configuration is not stored.
    pub(super) cache: Option<CacheWriter>,
    pub(super) encode_node: EncodeNode,
    pub(super) random: fastrand::Rng,
    pub(super) views: watch::Sender<ProxyView>,
    pub(super) state: Arc<AgentState>,
    pub(super) metrics: Arc<Metrics>,
}

pub(super) struct ProxyTask {
    proxy: Proxy,
    started: Instant,
    surroundings: Surroundings,
    envoy: Option<EnvoyStream>,
    to_envoy: VecDeque<Parts>,
    /// When Envoy must have read the first message of `to_envoy`.
    read_by: Option<Instant>,
    upstream: UpstreamHandle,
    to_upstream: VecDeque<Bytes>,
    /// When the control plane must have accepted the first message of `to_upstream`.
    accept_by: Option<Instant>,
    health: Option<HealthLink>,
    /// When to update the view, which takes longer than to pass on a message.
    publish_at: Option<Instant>,
    /// Text of the failure that was logged last; the same text is logged only once.
    last_logged_error: Option<String>,
}

impl ProxyTask {
    pub(super) fn new(proxy: Proxy, surroundings: Surroundings) -> Self {
        Self {
            proxy,
            started: Instant::now(),
            surroundings,
            envoy: None,
            to_envoy: VecDeque::new(),
            read_by: None,
            upstream: UpstreamHandle::None,
            to_upstream: VecDeque::new(),
            accept_by: None,
            health: None,
            publish_at: None,
            last_logged_error: None,
        }
    }

    pub(super) async fn run(
        mut self,
        mut streams: mpsc::Receiver<NewStream>,
        mut links: mpsc::Receiver<HealthLink>,
        stop: CancellationToken,
    ) {
        let mut phases = self.surroundings.state.subscribe();
        let mut is_terminating = false;
        while !(stop.is_cancelled() && self.proxy.is_stored()) {
            let input = tokio::select! {
                input = self.next_input(&mut streams, &mut links) => input,
                _ = phases.wait_for(|snapshot| snapshot.phase == Phase::Terminating), if !is_terminating => {
                    is_terminating = true;
                    Some(Input::Terminating)
                }
                () = stop.cancelled(), if !stop.is_cancelled() => None,
            };
            if let Some(input) = input {
                self.step(input);
            }
        }
    }

    /// Waits for the next event. `None` if the event needs no decision.
    async fn next_input(
        &mut self,
        streams: &mut mpsc::Receiver<NewStream>,
        links: &mut mpsc::Receiver<HealthLink>,
    ) -> Option<Input> {
        let due = self.proxy.next_due().map(|due| self.started + due);
        let timeouts = self.read_by.into_iter().chain(self.accept_by);
        let due = due.into_iter().chain(timeouts).chain(self.publish_at).min();
        let reads_envoy = self.to_upstream.len() < REQUESTS;
        let reads_upstream = self.to_envoy.is_empty() && self.proxy.reads_upstream();
        let upstream_requests = match &self.upstream {
            UpstreamHandle::Open(stream) => Some(stream.requests.clone()),
            _ => None,
        };
        let envoy_responses = self.envoy.as_ref().map(|envoy| envoy.responses.clone());
        tokio::select! {
            Some(stream) = streams.recv() => Some(self.replace_envoy(stream)),
            request = next_request(&mut self.envoy), if reads_envoy => Some(match request {
                Ok(message) => Input::EnvoyRequest(message),
                Err(status) => self.envoy_closed(&status),
            }),
            permit = reserve(envoy_responses), if !self.to_envoy.is_empty() => {
                if let (Some(permit), Some(message)) = (permit, self.to_envoy.pop_front()) {
                    permit.send(Ok(message));
                }
                self.read_by = (!self.to_envoy.is_empty()).then(|| Instant::now() + READ_TIMEOUT);
                None
            }
            permit = reserve(upstream_requests), if !self.to_upstream.is_empty() => {
                if let (Some(permit), Some(message)) = (permit, self.to_upstream.pop_front()) {
                    permit.send(Ok(grpc::parts(message, Bytes::new())));
                }
                self.accept_by = (!self.to_upstream.is_empty()).then(|| Instant::now() + ACCEPT_TIMEOUT);
                None
            }
            event = self.upstream.event(), if reads_upstream => self.on_upstream(event),
            Some(link) = links.recv() => {
                self.health = Some(link);
                Some(Input::HealthAttached)
            }
            request = next_report(&mut self.health) => {
                // The reporter has finished, or attaches again, if there is none.
                request.map(|request| Input::HealthRequest(request.encode(self.upstream.variant())))
            }
            result = next_write(&mut self.surroundings.cache) => {
                self.surroundings.metrics.vm.xds.stored(result.is_ok());
                Some(Input::Stored(result))
            }
            () = self.surroundings.certificates.changed(&self.surroundings.metrics) => Some(Input::FilesChanged),
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                if self.read_by.is_some_and(|read_by| Instant::now() >= read_by) {
                    return Some(self.envoy_closed(&Status::deadline_exceeded("Envoy does not read")));
                }
                if self.accept_by.is_some_and(|accept_by| Instant::now() >= accept_by) {
                    let reason = "the control plane accepts no requests".to_owned();
                    return self.on_upstream(UpstreamEvent::Closed { is_rejected: false, reason });
                }
                if self.publish_at.is_some_and(|at| Instant::now() >= at) {
                    self.publish();
                    return None;
                }
                Some(Input::Tick)
            }
        }
    }

    fn replace_envoy(&mut self, stream: NewStream) -> Input {
        let NewStream { variant, requests, responses } = stream;
        info!(?variant, "Envoy opened an xDS stream");
        self.envoy = Some(EnvoyStream { variant, requests, responses });
        self.to_envoy.clear();
        self.read_by = None;
        Input::EnvoyOpened(variant)
    }

    fn envoy_closed(&mut self, status: &Status) -> Input {
        info!(reason = printable(status.message()), "xDS stream of Envoy ended");
        self.drop_envoy();
        Input::EnvoyClosed
    }

    fn drop_envoy(&mut self) {
        self.envoy = None;
        self.to_envoy.clear();
        self.read_by = None;
    }

    fn on_upstream(&mut self, event: UpstreamEvent) -> Option<Input> {
        let metrics = &self.surroundings.metrics;
        match event {
            UpstreamEvent::Connected(connection) => {
                info!(peer = %connection.peer, server = %connection.origin, "connected to the discovery server");
                metrics.vm.reports.connected(true);
                metrics.vm.reports.connect("ok");
                self.clear_requests();
                let variant = self.envoy.as_ref().map_or(Variant::Sotw, |envoy| envoy.variant);
                let server = connection.origin.to_string();
                self.upstream.open(connection, variant);
                Some(Input::UpstreamOpened { node: (self.surroundings.encode_node)(), server })
            }
            UpstreamEvent::Response(message) => Some(Input::UpstreamResponse(message)),
            UpstreamEvent::Closed { is_rejected, reason } => {
                match &self.upstream {
                    UpstreamHandle::Connecting(_) => metrics.vm.reports.connect("failed"),
                    _ if is_rejected => metrics.vm.reports.connect("refused"),
                    _ => {}
                }
                if self.proxy.was_stable(self.started.elapsed()) {
                    self.last_logged_error = None;
                }
                if self.last_logged_error.as_ref() != Some(&reason) {
                    warn!(reason, "disconnected from the discovery server, Envoy keeps its configuration");
                    self.last_logged_error = Some(reason.clone());
                }
                self.drop_upstream();
                Some(Input::UpstreamClosed { is_rejected, reason })
            }
        }
    }

    fn drop_upstream(&mut self) {
        self.upstream = UpstreamHandle::None;
        self.clear_requests();
        self.surroundings.metrics.vm.reports.connected(false);
    }

    fn clear_requests(&mut self) {
        self.to_upstream.clear();
        self.accept_by = None;
    }

    fn step(&mut self, input: Input) {
        let now = self.started.elapsed();
        let random = &mut self.surroundings.random;
        for effect in self.proxy.step(now, input, &mut || random.f64()) {
            self.apply(effect);
        }
        self.surroundings.state.set_stale(self.proxy.stale(now));
        self.surroundings.state.set_store_error(self.proxy.store_error());
        self.publish_at.get_or_insert_with(|| Instant::now() + PUBLISH_DELAY);
    }

    fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::Connect => {
                let targets = self.surroundings.certificates.targets().to_vec();
                self.upstream.connect(targets, self.surroundings.random.fork());
            }
            Effect::CloseUpstream => self.drop_upstream(),
            Effect::SendUpstream(message) => {
                self.accept_by.get_or_insert_with(|| Instant::now() + ACCEPT_TIMEOUT);
                self.to_upstream.push_back(message);
            }
            Effect::SendEnvoy(message, suffix) => {
                self.read_by.get_or_insert_with(|| Instant::now() + READ_TIMEOUT);
                self.to_envoy.push_back(grpc::parts(message, suffix));
            }
            Effect::CloseEnvoy(reason) => {
                warn!(reason, "xDS stream of Envoy closed");
                self.drop_envoy();
            }
            Effect::Store { write, age } => {
                let good = self.proxy.last_good();
                if let Some(cache) = &mut self.surroundings.cache {
                    cache.start(write, good, age);
                }
            }
            Effect::Health(event) => self.on_health_event(event),
            Effect::Event(event) => {
                event_log::log(event, self.surroundings.cache.as_ref().map(CacheWriter::path))
            }
        }
    }

    fn on_health_event(&mut self, event: HealthEvent) {
        let variant = self.upstream.variant();
        let Some(link) = &mut self.health else { return };
        match event {
            HealthEvent::Opened => {
                let UpstreamHandle::Open(stream) = &self.upstream else { return };
                // Sending fails only if the reporter has ended.
                let _ = link.opened.take().map(|opened| opened.send(stream.peer.clone()));
            }
            HealthEvent::Response(message) => {
                if let Some(response) = Response::decode(&message, variant) {
                    link.respond(response);
                }
            }
            HealthEvent::Closed { is_rejected: rejected, reason: why } => {
                link.respond(Response::Ended { rejected, why });
                self.health = None;
            }
        }
    }

    fn publish(&mut self) {
        self.publish_at = None;
        let Surroundings { views, metrics, .. } = &self.surroundings;
        let view = self.proxy.view(self.started.elapsed());
        metrics.vm.xds.observe(&view);
        views.send_replace(view);
    }
}

async fn next_request(envoy: &mut Option<EnvoyStream>) -> Result<Bytes, Status> {
    match envoy {
        Some(envoy) => envoy.requests.next().await,
        None => std::future::pending().await,
    }
}

async fn next_report(health: &mut Option<HealthLink>) -> Option<Request> {
    match health {
        Some(link) => link.next_request().await,
        None => std::future::pending().await,
    }
}

async fn next_write(cache: &mut Option<CacheWriter>) -> Result<(), String> {
    match cache {
        Some(cache) => cache.finished().await,
        None => std::future::pending().await,
    }
}

/// Waits until a queue has room. `None` if its receiver is gone, which the other direction of the
/// stream reports too.
async fn reserve(queue: Option<Responses>) -> Option<mpsc::OwnedPermit<Result<Parts, Status>>> {
    match queue {
        Some(queue) => queue.reserve_owned().await.ok(),
        None => std::future::pending().await,
    }
}
