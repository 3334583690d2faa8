//! The task that drives the proxy: it turns I/O into inputs, and effects into I/O.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use serving::grpc::{self, Messages, Parts};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tracing::{debug, info, warn};
use workload_health::text::printable;
use xds::parse_any;
use xds_proxy::{Effect, HealthEvent, Input, LastGood, OwnResource, Proxy, ProxyView};

use super::OwnType;
use super::allocator;
use super::cache_writer::CacheWriter;
use super::certificates::Certificates;
use super::event_log;
use super::health_io::HealthIo;
use super::new_stream::{NewStream, Responses};
use super::upstream::{ALONE_LIMITS, UpstreamEvent, UpstreamHandle, envoy_limits};
use agent_state::metrics::Metrics;
use agent_state::state::AgentState;
use readiness::Phase;

/// Requests that may wait for the control plane before the next message of either side is read.
const REQUESTS: usize = 16;
/// An Envoy that reads nothing for this long is disconnected.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// A control plane that accepts no request for this long is disconnected, before Envoy, whose
/// acknowledgements wait for it, would be.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(15);
/// How long changes wait until the view shows them.
const PUBLISH_DELAY: Duration = Duration::from_millis(50);
/// Time limit, at the exit, for writing the xDS cache to the disk.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// The current stream of Envoy.
struct EnvoyStream {
    requests: Messages<Incoming>,
    responses: Responses,
}

/// What the task needs from the other parts of the agent.
pub(super) struct Context {
    pub(super) certificates: Certificates,
    /// `None` if the configuration is not stored.
    pub(super) cache: Option<CacheWriter>,
    pub(super) random: fastrand::Rng,
    /// `None` if no Envoy is served.
    pub(super) views: Option<watch::Sender<ProxyView>>,
    pub(super) state: Arc<AgentState>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) own: Vec<OwnType>,
    pub(super) response_limit: usize,
}

pub(super) struct ClientTask {
    proxy: Proxy,
    started: Instant,
    context: Context,
    health: HealthIo,
    envoy: Option<EnvoyStream>,
    to_envoy: VecDeque<Parts>,
    /// When Envoy must have read the first message of `to_envoy`.
    read_by: Option<Instant>,
    upstream: UpstreamHandle,
    to_upstream: VecDeque<Parts>,
    /// When the control plane must have accepted the first message of `to_upstream`.
    accept_by: Option<Instant>,
    /// True if the client's half of the upstream stream ends after `to_upstream`.
    is_half_closed: bool,
    /// When to update the view, which takes longer than to pass on a message.
    publish_at: Option<Instant>,
    /// Text of the failure that was logged last; the same text is logged only once.
    last_logged_error: Option<String>,
}

impl ClientTask {
    pub(super) fn new(proxy: Proxy, health: HealthIo, context: Context) -> Self {
        Self {
            proxy,
            started: health.handle.started(),
            context,
            health,
            envoy: None,
            to_envoy: VecDeque::new(),
            read_by: None,
            upstream: UpstreamHandle::None,
            to_upstream: VecDeque::new(),
            accept_by: None,
            is_half_closed: false,
            publish_at: None,
            last_logged_error: None,
        }
    }

    /// Runs until the final report is delivered and the last configuration is stored, or either has
    /// timed out, but not before `stop`.
    pub(super) async fn run(
        mut self,
        mut streams: mpsc::Receiver<NewStream>,
        mut validations: mpsc::Receiver<Input>,
        stop: CancellationToken,
    ) {
        let mut phases = self.context.state.subscribe();
        let mut snapshots = self.health.handle.subscribe();
        let (mut is_probed, mut is_terminating, mut store_by) = (true, false, None);
        self.step(Input::Health(snapshots.borrow_and_update().status.clone()));
        loop {
            if stop.is_cancelled() && self.health.is_done {
                if self.proxy.is_stored() {
                    return;
                }
                store_by.get_or_insert_with(|| Instant::now() + STORE_TIMEOUT);
            }
            let input = tokio::select! {
                input = self.next_input(&mut streams) => input,
                changed = snapshots.changed(), if is_probed => {
                    is_probed = changed.is_ok();
                    Some(Input::Health(snapshots.borrow_and_update().status.clone()))
                }
                Some(validated) = validations.recv() => Some(validated),
                _ = phases.wait_for(|snapshot| snapshot.phase == Phase::Terminating), if !is_terminating => {
                    is_terminating = true;
                    Some(Input::Terminating)
                }
                () = stop.cancelled(), if !stop.is_cancelled() => None,
                () = sleep_until(store_by.unwrap_or_else(Instant::now)), if store_by.is_some() => {
                    warn!("xDS configuration not stored before the exit: the disk is too slow");
                    return;
                }
            };
            if let Some(input) = input {
                let frees_memory = matches!(&input, Input::Stored { packed, .. } if !packed.0.is_empty());
                self.step(input);
                if frees_memory {
                    spawn_blocking(allocator::release);
                }
            }
        }
    }

    /// Waits for the next event. `None` if the event needs no decision.
    async fn next_input(&mut self, streams: &mut mpsc::Receiver<NewStream>) -> Option<Input> {
        let due = self.proxy.next_due().map(|due| self.started + due);
        let timeouts = self.read_by.into_iter().chain(self.accept_by);
        let due = due.into_iter().chain(timeouts).chain(self.publish_at).min();
        let reads_envoy = self.to_upstream.len() < REQUESTS;
        // A response can cause a request. What waits is sent, or the stream ends after
        // ACCEPT_TIMEOUT.
        let reads_upstream =
            self.to_envoy.is_empty() && self.to_upstream.len() < REQUESTS && self.proxy.reads_upstream();
        let upstream_requests = self.upstream.requests();
        let envoy_responses = self.envoy.as_ref().map(|envoy| envoy.responses.clone());
        tokio::select! {
            Some(stream) = streams.recv() => Some(self.replace_envoy(stream)),
            request = next_request(&mut self.envoy), if reads_envoy => Some(match request {
                Ok(message) => {
                    self.context.metrics.vm.streams.requests.inc();
                    Input::EnvoyRequest(message)
                }
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
                    permit.send(Ok(message));
                }
                self.accept_by = (!self.to_upstream.is_empty()).then(|| Instant::now() + ACCEPT_TIMEOUT);
                self.half_close();
                None
            }
            event = self.upstream.event(), if reads_upstream => self.on_upstream(event),
            (packed, result) = next_write(&mut self.context.cache) => {
                self.context.metrics.vm.xds.stored(result.is_ok());
                Some(Input::Stored { packed, result })
            }
            () = self.context.certificates.changed(&self.context.metrics) => Some(Input::FilesChanged),
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => self.timed_out(),
        }
    }

    fn timed_out(&mut self) -> Option<Input> {
        let now = Instant::now();
        let is_due = |at: Option<Instant>| at.is_some_and(|at| now >= at);
        if is_due(self.read_by) {
            return Some(self.envoy_closed(&Status::deadline_exceeded("Envoy does not read")));
        }
        if is_due(self.accept_by) {
            let reason = "the control plane accepts no requests".to_owned();
            return self.on_upstream(UpstreamEvent::Closed { is_rejected: false, reason });
        }
        if is_due(self.publish_at) {
            self.publish();
            return None;
        }
        Some(Input::Tick)
    }

    fn replace_envoy(&mut self, stream: NewStream) -> Input {
        let NewStream { variant, requests, responses } = stream;
        info!(?variant, "Envoy opened an xDS stream");
        self.drop_envoy();
        self.envoy = Some(EnvoyStream { requests, responses });
        Input::EnvoyOpened(variant)
    }

    fn envoy_closed(&mut self, status: &Status) -> Input {
        info!(reason = printable(status.message()), "xDS stream of Envoy ended");
        self.context.metrics.vm.streams.envoy_terminations.inc();
        self.drop_envoy();
        Input::EnvoyClosed
    }

    fn drop_envoy(&mut self) {
        self.envoy = None;
        self.to_envoy.clear();
        self.read_by = None;
    }

    fn on_upstream(&mut self, event: UpstreamEvent) -> Option<Input> {
        let metrics = &self.context.metrics;
        match event {
            UpstreamEvent::Connected(connection) => {
                info!(peer = %connection.peer, server = %connection.origin, "connected to the discovery server");
                metrics.vm.reports.connected(true);
                metrics.vm.reports.connect("ok");
                self.clear_requests();
                if self.envoy.is_none() {
                    self.last_logged_error = None;
                }
                let limits = match self.envoy {
                    Some(_) => envoy_limits(self.context.response_limit),
                    None => ALONE_LIMITS,
                };
                let server = connection.origin.to_string();
                self.upstream.open(connection, self.proxy.variant(), limits);
                Some(Input::UpstreamOpened { node: self.health.node(), server })
            }
            UpstreamEvent::Response(message) => {
                metrics.vm.streams.responses.inc();
                Some(Input::UpstreamResponse(message))
            }
            UpstreamEvent::Closed { is_rejected, reason } => {
                if matches!(self.upstream, UpstreamHandle::Connecting(_)) {
                    metrics.vm.streams.connection_failures.inc();
                    metrics.vm.reports.connect("failed");
                } else {
                    metrics.vm.streams.connection_terminations.inc();
                    if is_rejected {
                        metrics.vm.reports.connect("refused");
                    }
                }
                if !self.is_half_closed {
                    let was_stable = self.proxy.was_stable(self.started.elapsed());
                    self.log_failure(&reason, was_stable);
                }
                self.drop_upstream();
                Some(Input::UpstreamClosed { is_rejected, reason })
            }
        }
    }

    /// The same failure is logged again only after a stable stream.
    fn log_failure(&mut self, reason: &str, was_stable: bool) {
        self.health.failed(reason);
        if !was_stable && self.last_logged_error.as_deref() == Some(reason) {
            return;
        }
        if self.envoy.is_some() {
            warn!(reason, "disconnected from the discovery server, Envoy keeps its configuration");
        } else {
            warn!(reason, "disconnected from the discovery server");
        }
        self.last_logged_error = Some(reason.to_owned());
    }

    fn drop_upstream(&mut self) {
        self.upstream = UpstreamHandle::None;
        self.clear_requests();
        self.context.metrics.vm.reports.connected(false);
    }

    fn clear_requests(&mut self) {
        self.to_upstream.clear();
        self.accept_by = None;
        self.is_half_closed = false;
    }

    /// Closes the client's half of the upstream stream once all requests are sent.
    fn half_close(&mut self) {
        if self.is_half_closed && self.to_upstream.is_empty() {
            self.upstream.half_close();
        }
    }

    fn step(&mut self, input: Input) {
        let now = self.started.elapsed();
        let was_stable = self.proxy.was_stable(now);
        let random = &mut self.context.random;
        for effect in self.proxy.step(now, input, &mut || random.f64()) {
            self.apply(effect, was_stable);
        }
        self.health.stepped(&self.proxy, self.started, &self.context.metrics);
        self.context.state.set_stale(self.proxy.stale(now));
        self.context.state.set_store_error(self.proxy.store_error());
        if self.context.views.is_some() {
            self.publish_at.get_or_insert_with(|| Instant::now() + PUBLISH_DELAY);
        }
    }

    fn apply(&mut self, effect: Effect, was_stable: bool) {
        match effect {
            Effect::Connect => {
                let targets = self.context.certificates.targets().to_vec();
                self.upstream.connect(targets, self.context.random.fork());
            }
            Effect::CloseUpstream => {
                self.health.closed_by_agent();
                self.drop_upstream();
            }
            Effect::AbortUpstream(reason) => {
                self.log_failure(reason, was_stable);
                self.drop_upstream();
            }
            Effect::HalfCloseUpstream => {
                self.is_half_closed = true;
                self.half_close();
            }
            Effect::SendUpstream(message) => {
                let queue = self.upstream.requests().filter(|_| self.to_upstream.is_empty());
                if let Err(waiting) = try_send(queue, grpc::parts(message, Bytes::new())) {
                    self.accept_by.get_or_insert_with(|| Instant::now() + ACCEPT_TIMEOUT);
                    self.to_upstream.push_back(waiting);
                }
            }
            Effect::SendEnvoy(message, suffix) => {
                let queue = self.envoy.as_ref().map(|envoy| envoy.responses.clone());
                let queue = queue.filter(|_| self.to_envoy.is_empty());
                if let Err(waiting) = try_send(queue, grpc::parts(message, suffix)) {
                    self.read_by.get_or_insert_with(|| Instant::now() + READ_TIMEOUT);
                    self.to_envoy.push_back(waiting);
                }
            }
            Effect::Own(resource) => {
                let result = self.use_own(&resource);
                if let Err(error) = &result {
                    warn!(type_url = resource.type_url, error, "resource of the control plane refused");
                }
                self.step(Input::OwnChecked { resource, result });
            }
            Effect::CloseEnvoy(reason) => {
                warn!(reason, "xDS stream of Envoy closed");
                self.drop_envoy();
            }
            Effect::Store { write, age } => {
                let good = self.proxy.last_good();
                if let Some(cache) = &mut self.context.cache {
                    cache.start(write, good, age);
                }
            }
            Effect::Health(event) => {
                let peer = self.upstream.peer();
                if event == HealthEvent::Opened && self.envoy.is_some() {
                    debug!(peer, "health reports use the xDS stream of Envoy");
                }
                self.health.on_event(event, peer, &self.context.metrics);
            }
            Effect::Event(event) => event_log::log(event, self.context.cache.as_ref().map(CacheWriter::path)),
        }
    }

    fn use_own(&self, resource: &OwnResource) -> Result<(), String> {
        let (_, content) = parse_any(&resource.any).map_err(|error| error.to_string())?;
        let own = self.context.own.iter().find(|own| own.type_url == resource.type_url);
        own.map_or(Ok(()), |own| (own.accept)(&content))
    }

    fn publish(&mut self) {
        self.publish_at = None;
        let Some(views) = &self.context.views else { return };
        let view = self.proxy.view(self.started.elapsed());
        self.context.metrics.vm.xds.observe(&view);
        views.send_replace(view);
    }
}

async fn next_request(envoy: &mut Option<EnvoyStream>) -> Result<Bytes, Status> {
    match envoy {
        Some(envoy) => envoy.requests.next().await,
        None => std::future::pending().await,
    }
}

async fn next_write(cache: &mut Option<CacheWriter>) -> (LastGood, Result<(), String>) {
    match cache {
        Some(cache) => cache.finished().await,
        None => std::future::pending().await,
    }
}

/// Sends a message now, without another turn of the loop; returns it if there is no queue with room. A message to
/// a queue without a receiver is lost; the other direction of the stream reports that it ended.
fn try_send(queue: Option<mpsc::Sender<Result<Parts, Status>>>, message: Parts) -> Result<(), Parts> {
    let Some(queue) = queue else { return Err(message) };
    match queue.try_send(Ok(message)) {
        Err(TrySendError::Full(Ok(message))) => Err(message),
        _ => Ok(()),
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

#[cfg(test)]
mod tests;
