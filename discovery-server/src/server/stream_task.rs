//! One ADS stream: decodes requests, runs the state machine [`AdsStream`], sends its effects to the
//! registry, and writes responses.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use serving::grpc::{self, Flow, MessageBody, Messages};
use time::OffsetDateTime;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tonic::{Code as GrpcCode, Status};
use tracing::{info, warn};

use super::Shared;
use super::peer::{Peer, StreamGuard};
use super::permits::StreamPermits;
use super::shared::MESSAGE_TIMEOUT;
use crate::metrics::{RefusedReason, StreamKind};
use discovery::entries::{Code, Input as RegistryInput, Node, StreamCommand, StreamId};
use discovery::message::{Response, TypeUrl, Variant};
use discovery::snapshot::Snapshot;
use discovery::stream::{AdsStream, Effect, Event, Input};
use discovery::wire;

/// A client that reads nothing for this long is disconnected.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// How long an ending stream may take to send its status; after that its connection is closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Capacity of the channel from the registry to a stream.
const FROM_REGISTRY: usize = 8;

pub(super) type HttpResponse = hyper::Response<tonic::body::Body>;

/// Returns a response that consists only of a gRPC status.
pub(super) fn error_response(status: &Status) -> HttpResponse {
    status.clone().into_http()
}

/// Starts a stream, or returns an error status if a limit is reached.
pub(super) fn open(
    body: Incoming,
    variant: Variant,
    peer: Arc<Peer>,
    shared: &Arc<Shared>,
    connection: StreamGuard,
    closing: CancellationToken,
) -> HttpResponse {
    let permits = match StreamPermits::new(&peer, shared, connection) {
        Ok(permits) => permits,
        Err(status) => {
            shared.metrics.refused(RefusedReason::Limit);
            return error_response(&status);
        }
    };
    let incomplete_limits = shared.incomplete_limits(peer.address.ip().into());
    let (out, responses) = mpsc::channel(1);
    let (to_stream, from_registry) = mpsc::channel(FROM_REGISTRY);
    let flow = Flow::default();
    let certified = peer.certified.as_ref().and_then(|certified| certified.as_ref().ok());
    let namespace = certified.map(|certified| certified.identity.namespace.clone());
    let task = StreamTask {
        id: shared.next_stream(),
        variant,
        ads: AdsStream::new(variant, namespace),
        node: "".into(),
        out,
        outbox: VecDeque::new(),
        to_stream: Some(to_stream),
        flow: flow.clone(),
        check_flow_at: None,
        first_request_by: Some(Instant::now() + MESSAGE_TIMEOUT),
        permits,
        peer,
    };
    let requests = Messages::new(body, wire::MESSAGE_LIMIT).limit_incomplete(incomplete_limits);
    let snapshots = shared.registry.snapshots();
    tokio::spawn(task.run(requests, from_registry, snapshots, closing));
    let encode = move |response: Box<Response>| grpc::encoded(|to| wire::encode(*response, variant, to));
    let body = MessageBody::of_response(responses, flow, encode);
    let mut response = HttpResponse::new(tonic::body::Body::new(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}

struct StreamTask {
    id: StreamId,
    variant: Variant,
    ads: AdsStream,
    /// Node ID that the client declares.
    node: Arc<str>,
    out: mpsc::Sender<Result<Box<Response>, Status>>,
    /// At most one response per subscribed type, one probe configuration and one acknowledgement.
    outbox: VecDeque<Response>,
    /// Sender for the registry; `None` once the registry knows the stream.
    to_stream: Option<mpsc::Sender<StreamCommand>>,
    flow: Flow,
    /// Set after a send: when to check whether the client has read the data.
    check_flow_at: Option<Instant>,
    /// Until when the first request must arrive; `None` once it has.
    first_request_by: Option<Instant>,
    permits: StreamPermits,
    peer: Arc<Peer>,
}

/// Why a stream ends: with this status, or (`None`) because the peer ended it.
type EndReason = Option<Status>;

impl StreamTask {
    async fn run(
        mut self,
        requests: Messages<Incoming>,
        from_registry: mpsc::Receiver<StreamCommand>,
        snapshots: watch::Receiver<Arc<Snapshot>>,
        closing: CancellationToken,
    ) {
        let Err(ended) = self.serve(requests, from_registry, snapshots, closing).await;
        if self.to_stream.is_none() {
            self.shared().registry.send(RegistryInput::Closed { stream: self.id }).await;
            self.shared().update_client(self.id, &self.node, &self.flow, Vec::new());
        }
        let said = async {
            let _ = self.out.send(Err(ended.unwrap_or_else(|| Status::ok("")))).await;
            self.out.closed().await;
        };
        if timeout(CLOSE_TIMEOUT, said).await.is_err() {
            self.permits.connection.close_connection();
        }
    }

    async fn serve(
        &mut self,
        mut requests: Messages<Incoming>,
        mut from_registry: mpsc::Receiver<StreamCommand>,
        mut snapshots: watch::Receiver<Arc<Snapshot>>,
        closing: CancellationToken,
    ) -> Result<Infallible, EndReason> {
        let out = self.out.clone();
        loop {
            let due = self.ads.next_due().map(|due| self.shared().start + due);
            let timer = due.into_iter().chain(self.check_flow_at).chain(self.first_request_by).min();
            let input = tokio::select! {
                request = requests.next() => {
                    self.first_request_by = None;
                    self.read(request)?
                }
                Some(command) = from_registry.recv() => match command {
                    StreamCommand::Close { code, text } => return Err(Some(status(code, text))),
                    command => Input::Command(command),
                },
                Ok(()) = snapshots.changed(), if self.ads.subscribes() => Input::Poll,
                Ok(permit) = out.reserve(), if !self.outbox.is_empty() => {
                    if let Some(response) = self.outbox.pop_front() {
                        permit.send(Ok(Box::new(response)));
                        self.check_flow_at.get_or_insert_with(|| Instant::now() + READ_TIMEOUT);
                    }
                    continue;
                }
                () = sleep_until(timer.unwrap_or_else(Instant::now)), if timer.is_some() => {
                    self.check_first_request()?;
                    self.check_flow()?;
                    Input::Poll
                }
                () = closing.cancelled() => return Err(Some(Status::unavailable("server is shutting down"))),
            };
            let snapshot = snapshots.borrow_and_update().clone();
            self.step(input, &snapshot).await?;
        }
    }

    fn shared(&self) -> &Shared {
        &self.permits.shared
    }

    /// Decodes a request; ends the stream if the client certificate has expired.
    fn read(&self, request: Result<Bytes, Status>) -> Result<Input, EndReason> {
        let metrics = &self.shared().metrics;
        let bytes = request.map_err(|status| {
            if matches!(status.code(), GrpcCode::ResourceExhausted | GrpcCode::DeadlineExceeded) {
                metrics.refused(RefusedReason::Limit);
            }
            let text = format!("request: {}", status.message());
            (status.code() != GrpcCode::Ok).then(|| Status::new(status.code(), text))
        })?;
        if let Some(Ok(certified)) = &self.peer.certified
            && certified.not_after < OffsetDateTime::now_utc().unix_timestamp()
        {
            metrics.refused(RefusedReason::Identity);
            return Err(Some(Status::unauthenticated("client certificate: expired")));
        }
        match wire::decode(bytes, self.variant) {
            Ok(request) => Ok(Input::Request(Box::new(request))),
            Err(error) => {
                metrics.refused(RefusedReason::Malformed);
                Err(Some(Status::invalid_argument(error.to_string())))
            }
        }
    }

    /// Ends the stream if it has no request within [`MESSAGE_TIMEOUT`].
    fn check_first_request(&self) -> Result<(), EndReason> {
        if self.first_request_by.is_none_or(|by| Instant::now() < by) {
            return Ok(());
        }
        self.shared().metrics.refused(RefusedReason::Limit);
        Err(Some(Status::deadline_exceeded("no request on this stream")))
    }

    /// Ends the stream if the peer has read nothing for [`READ_TIMEOUT`].
    fn check_flow(&mut self) -> Result<(), EndReason> {
        let now = Instant::now();
        if self.check_flow_at.is_none_or(|at| now < at) {
            return Ok(());
        }
        self.check_flow_at = match self.flow.blocked() {
            None => None,
            Some(blocked) if blocked >= READ_TIMEOUT => {
                self.shared().metrics.slow_readers.inc();
                if self.may_log() {
                    info!(stream = self.id, node = %self.node, "client disconnected: no data read for 30s");
                }
                return Err(Some(Status::deadline_exceeded("no data read for 30s")));
            }
            Some(blocked) => Some(now + (READ_TIMEOUT - blocked)),
        };
        Ok(())
    }

    async fn step(&mut self, input: Input, snapshot: &Snapshot) -> Result<(), EndReason> {
        let mut is_news = matches!(input, Input::Request(_));
        for effect in self.ads.step(self.shared().now(), input, snapshot) {
            is_news |= matches!(effect, Effect::Send(_));
            self.apply(effect).await?;
        }
        if is_news && self.ads.subscribes() {
            let views = self.ads.views().collect();
            self.shared().update_client(self.id, &self.node, &self.flow, views);
        }
        Ok(())
    }

    async fn apply(&mut self, effect: Effect) -> Result<(), EndReason> {
        let stream = self.id;
        let registry = &self.permits.shared.registry;
        match effect {
            Effect::Open(node) => self.opened(node).await,
            Effect::Report(report) => registry.send(RegistryInput::Report { stream, report }).await,
            Effect::ProbeAcked(version) => registry.send(RegistryInput::ProbeAcked { stream, version }).await,
            Effect::ProbeNacked(text) => registry.send(RegistryInput::ProbeNacked { stream, text }).await,
            Effect::Send(response) => self.enqueue(response),
            Effect::Event(event) => self.log_event(event),
            Effect::Close(code, text) => {
                self.shared().metrics.refused(RefusedReason::Malformed);
                return Err(Some(status(code, text)));
            }
        }
        Ok(())
    }

    async fn opened(&mut self, node: Box<Node>) {
        let Some(to_stream) = self.to_stream.take() else { return };
        self.node = node.id.as_str().into();
        let kind = match &*node {
            node if node.app_health => StreamKind::AppHealth,
            node if node.group.is_some() || node.workload_entry.is_some() => StreamKind::Istio,
            _ => StreamKind::Client,
        };
        self.shared().metrics.stream_opened(kind);
        self.permits.kind = Some(kind);
        let certified = self.peer.certified.as_ref().and_then(|certified| certified.as_ref().ok());
        let identity = certified.map(|certified| certified.identity.clone());
        let registry = &self.permits.shared.registry;
        registry.opened(self.id, self.peer.address, identity, node, to_stream).await;
    }

    /// Queues a response. Only the newest probe configuration and the newest acknowledgement are
    /// kept.
    fn enqueue(&mut self, response: Response) {
        match response.type_url {
            TypeUrl::Probe | TypeUrl::Health => {
                self.outbox.retain(|waiting| waiting.type_url != response.type_url);
            }
            _ => self.shared().metrics.pushed(&response.type_url),
        }
        self.outbox.push_back(response);
    }

    fn may_log(&self) -> bool {
        self.shared().may_log(self.peer.address.ip().into())
    }

    fn log_event(&self, event: Event) {
        let (stream, node, metrics) = (self.id, &self.node, &self.shared().metrics);
        match event {
            Event::Nacked { type_url, text, is_new } => {
                metrics.nacked(&type_url);
                if is_new && self.may_log() {
                    warn!(stream, %node, r#type = type_url.short_name(), text, "client rejected a response (NACK)");
                }
            }
            Event::UnknownType(type_url) => {
                metrics.unknown_types.inc();
                if self.may_log() {
                    info!(stream, %node, type_url, "type URL is not served, sending an empty set");
                }
            }
        }
    }
}

fn status(code: Code, text: String) -> Status {
    let code = match code {
        Code::InvalidArgument => GrpcCode::InvalidArgument,
        Code::PermissionDenied => GrpcCode::PermissionDenied,
        Code::FailedPrecondition => GrpcCode::FailedPrecondition,
        Code::ResourceExhausted => GrpcCode::ResourceExhausted,
        Code::Aborted => GrpcCode::Aborted,
    };
    Status::new(code, text)
}
