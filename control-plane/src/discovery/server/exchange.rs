//! One ADS stream: decodes requests, runs the state machine [`AdsStream`], sends its effects to the
//! registry, and writes responses.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use time::OffsetDateTime;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tonic::codec::{EncodeBody, SingleMessageCompressionOverride};
use tonic::{Code as GrpcCode, Status};
use tracing::{info, warn};

use super::Shared;
use super::admitted::Admitted;
use super::codec::Responses;
use super::connection::{Peer, Use};
use super::outlet::{Flow, Outlet};
use super::requests::Requests;
use crate::discovery::metrics::{RefusedReason, StreamKind};
use crate::discovery::registry::ToStream;
use discovery::entries::{Code, Input as ToRegistry, Node, StreamId};
use discovery::message::{Response, TypeUrl, Variant};
use discovery::snapshot::Snapshot;
use discovery::stream::{AdsStream, Effect, Input, Note};
use discovery::xds;
use workload_health::{Hello, WorkloadProbe};

/// A client that reads nothing for this long is disconnected.
const BLOCKED: Duration = Duration::from_secs(30);
/// How long an ending stream may take to send its status; after that its connection is closed.
const LAST_WORD: Duration = Duration::from_secs(1);
/// Capacity of the channel from the registry to a stream.
const FROM_REGISTRY: usize = 8;

pub(super) type Answer = hyper::Response<tonic::body::Body>;

/// Returns a response that consists only of a gRPC status.
pub(super) fn refusal(status: &Status) -> Answer {
    status.clone().into_http()
}

/// Starts a stream, or returns an error status if a limit is reached.
pub(super) fn open(
    body: Incoming,
    variant: Variant,
    peer: Arc<Peer>,
    shared: &Arc<Shared>,
    connection: Use,
    closing: CancellationToken,
) -> Answer {
    let admitted = match Admitted::new(&peer, shared, connection) {
        Ok(admitted) => admitted,
        Err(status) => {
            shared.metrics.refused(RefusedReason::Limit);
            return refusal(&status);
        }
    };
    let (out, mut answers) = mpsc::channel(1);
    let (to_stream, from_registry) = mpsc::channel(FROM_REGISTRY);
    let flow = Flow::new();
    let certified = peer.certified.as_ref().and_then(|certified| certified.as_ref().ok());
    let namespace = certified.map(|certified| certified.identity.namespace.clone());
    let exchange = Exchange {
        id: shared.next_stream(),
        variant,
        ads: AdsStream::new(variant, namespace),
        node: "".into(),
        out,
        outbox: VecDeque::new(),
        to_stream: Some(to_stream),
        flow: flow.clone(),
        look_at_flow: None,
        admitted,
        peer,
    };
    let requests = Requests::new(body);
    let snapshots = shared.registry.snapshots();
    tokio::spawn(exchange.run(requests, from_registry, snapshots, closing));
    let answers = stream::poll_fn(move |context| answers.poll_recv(context));
    let uncompressed = SingleMessageCompressionOverride::default();
    let body = EncodeBody::new_server(Responses(variant), answers, None, uncompressed, None);
    let mut response = Answer::new(tonic::body::Body::new(Outlet::new(Box::pin(body), flow)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}

struct Exchange {
    id: StreamId,
    variant: Variant,
    ads: AdsStream,
    /// Node ID that the client declares.
    node: Arc<str>,
    out: mpsc::Sender<Result<Box<Response>, Status>>,
    /// At most one response per subscribed type, one probe configuration and one acknowledgement.
    outbox: VecDeque<Response>,
    /// Sender for the registry; `None` once the registry knows the stream.
    to_stream: Option<mpsc::Sender<ToStream>>,
    flow: Flow,
    /// Set after a send: when to check whether the client has read the data.
    look_at_flow: Option<Instant>,
    admitted: Admitted,
    peer: Arc<Peer>,
}

/// Why a stream ends: with this status, or (`None`) because the peer ended it.
type Ended = Option<Status>;

impl Exchange {
    async fn run(
        mut self,
        requests: Requests<Incoming>,
        from_registry: mpsc::Receiver<ToStream>,
        snapshots: watch::Receiver<Arc<Snapshot>>,
        closing: CancellationToken,
    ) {
        let Err(ended) = self.serve(requests, from_registry, snapshots, closing).await;
        if self.to_stream.is_none() {
            self.shared().registry.send(ToRegistry::Closed { stream: self.id }).await;
            self.shared().show(self.id, &self.node, &self.flow, Vec::new());
        }
        let said = async {
            let _ = self.out.send(Err(ended.unwrap_or_else(|| Status::ok("")))).await;
            self.out.closed().await;
        };
        if timeout(LAST_WORD, said).await.is_err() {
            self.admitted.connection.leave();
        }
    }

    async fn serve(
        &mut self,
        mut requests: Requests<Incoming>,
        mut from_registry: mpsc::Receiver<ToStream>,
        mut snapshots: watch::Receiver<Arc<Snapshot>>,
        closing: CancellationToken,
    ) -> Result<Infallible, Ended> {
        let out = self.out.clone();
        loop {
            let due = self.ads.next_due().map(|due| self.shared().at(due));
            let timer = due.into_iter().chain(self.look_at_flow).min();
            let input = tokio::select! {
                request = requests.message() => self.read(request)?,
                Some(word) = from_registry.recv() => word_of_registry(word)?,
                Ok(()) = snapshots.changed(), if self.ads.subscribes() => Input::Look,
                Ok(permit) = out.reserve(), if !self.outbox.is_empty() => {
                    if let Some(response) = self.outbox.pop_front() {
                        permit.send(Ok(Box::new(response)));
                        self.look_at_flow.get_or_insert_with(|| Instant::now() + BLOCKED);
                    }
                    continue;
                }
                () = sleep_until(timer.unwrap_or_else(Instant::now)), if timer.is_some() => {
                    self.flows()?;
                    Input::Look
                }
                () = closing.cancelled() => return Err(Some(Status::unavailable("server is shutting down"))),
            };
            let snapshot = snapshots.borrow_and_update().clone();
            self.step(input, &snapshot).await?;
        }
    }

    fn shared(&self) -> &Shared {
        &self.admitted.shared
    }

    /// Decodes a request; ends the stream if the client certificate has expired.
    fn read(&self, request: Result<Option<Bytes>, Status>) -> Result<Input, Ended> {
        let metrics = &self.shared().metrics;
        let bytes = match request {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Err(None),
            Err(status) => {
                if status.code() == GrpcCode::ResourceExhausted {
                    metrics.refused(RefusedReason::Limit);
                }
                return Err(Some(status));
            }
        };
        if let Some(Ok(certified)) = &self.peer.certified
            && certified.not_after < OffsetDateTime::now_utc().unix_timestamp()
        {
            metrics.refused(RefusedReason::Identity);
            return Err(Some(Status::unauthenticated("client certificate: expired")));
        }
        match xds::read(bytes, self.variant) {
            Ok(request) => Ok(Input::Request(Box::new(request))),
            Err(error) => {
                metrics.refused(RefusedReason::Malformed);
                Err(Some(Status::invalid_argument(error.to_string())))
            }
        }
    }

    /// Ends the stream if the peer has read nothing for [`BLOCKED`].
    fn flows(&mut self) -> Result<(), Ended> {
        let now = Instant::now();
        if self.look_at_flow.is_none_or(|at| now < at) {
            return Ok(());
        }
        self.look_at_flow = match self.flow.blocked() {
            None => None,
            Some(blocked) if blocked >= BLOCKED => {
                self.shared().metrics.slow_reader();
                info!(stream = self.id, node = %self.node, "client disconnected: no data read for 30s");
                return Err(Some(Status::deadline_exceeded("no data read for 30s")));
            }
            Some(blocked) => Some(now + (BLOCKED - blocked)),
        };
        Ok(())
    }

    async fn step(&mut self, input: Input, snapshot: &Snapshot) -> Result<(), Ended> {
        let mut is_news = matches!(input, Input::Request(_));
        for effect in self.ads.step(self.shared().now(), input, snapshot) {
            is_news |= matches!(effect, Effect::Send(_));
            self.apply(effect).await?;
        }
        if is_news && self.ads.subscribes() {
            let views = self.ads.views().collect();
            self.shared().show(self.id, &self.node, &self.flow, views);
        }
        Ok(())
    }

    async fn apply(&mut self, effect: Effect) -> Result<(), Ended> {
        let stream = self.id;
        let registry = &self.admitted.shared.registry;
        match effect {
            Effect::Open(node) => self.opened(node).await,
            Effect::Report(report) => registry.send(ToRegistry::Report { stream, report }).await,
            Effect::ProbeAcked(version) => registry.send(ToRegistry::ProbeAcked { stream, version }).await,
            Effect::ProbeNacked(text) => registry.send(ToRegistry::ProbeNacked { stream, text }).await,
            Effect::Send(response) => self.put(response),
            Effect::Note(note) => self.note(note),
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
            node if node.group.is_some() || node.workload_entry.is_some() => StreamKind::Plain,
            _ => StreamKind::Client,
        };
        self.shared().metrics.stream_opened(kind);
        self.admitted.kind = Some(kind);
        let certified = self.peer.certified.as_ref().and_then(|certified| certified.as_ref().ok());
        let identity = certified.map(|certified| certified.identity.clone());
        let registry = &self.admitted.shared.registry;
        registry.opened(self.id, self.peer.address, identity, node, to_stream).await;
    }

    /// Queues a response. Only the newest probe configuration and the newest acknowledgement are
    /// kept.
    fn put(&mut self, response: Response) {
        match response.type_url {
            TypeUrl::Probe | TypeUrl::Health => {
                self.outbox.retain(|waiting| waiting.type_url != response.type_url);
            }
            _ => self.shared().metrics.pushed(&response.type_url),
        }
        self.outbox.push_back(response);
    }

    fn note(&self, note: Note) {
        let (stream, node, metrics) = (self.id, &self.node, &self.shared().metrics);
        match note {
            Note::Nacked { type_url, text, is_new } => {
                metrics.nacked(&type_url);
                if is_new {
                    warn!(stream, %node, r#type = type_url.word(), text, "client rejected a response (NACK)");
                }
            }
            Note::UnknownType(type_url) => {
                metrics.unknown_type();
                info!(stream, %node, type_url, "unsupported type URL requested");
            }
            Note::UnknownTypeAgain => metrics.unknown_type(),
        }
    }
}

fn word_of_registry(word: ToStream) -> Result<Input, Ended> {
    match word {
        ToStream::Hello { session, heartbeat, probe } => {
            let version = probe.as_ref().map_or_else(String::new, |group| group.probe_version.clone());
            let probe = probe.and_then(|group| group.group.probe.as_ref().map(WorkloadProbe::to_json));
            Ok(Input::Hello { hello: Hello { session, heartbeat, probe }.to_json(), version })
        }
        ToStream::Ack { epoch, generation } => Ok(Input::Ack { epoch, generation }),
        ToStream::Close { code, text } => Err(Some(status(code, text))),
    }
}

fn status(code: Code, text: String) -> Status {
    let code = match code {
        Code::InvalidArgument => GrpcCode::InvalidArgument,
        Code::PermissionDenied => GrpcCode::PermissionDenied,
        Code::FailedPrecondition => GrpcCode::FailedPrecondition,
        Code::Aborted => GrpcCode::Aborted,
    };
    Status::new(code, text)
}
