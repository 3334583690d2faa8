//! A control plane without decisions: each type has the resources that a benchmark sets, and a change
//! is sent to the newest stream. It serves state of the world in plaintext.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};

use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_server::{
    AggregatedDiscoveryService, AggregatedDiscoveryServiceServer,
};
use envoy_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
};
use envoy_types::pb::google::protobuf::Any;
use futures_util::Stream;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::codegen::Service as _;
use tonic::{Request, Response, Status, Streaming};

type Sender = mpsc::UnboundedSender<Result<DiscoveryResponse, Status>>;
type Responses<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[derive(Debug, Default)]
struct State {
    resources: HashMap<String, Vec<Any>>,
    /// The number of changes, which is also the version and the nonce of a response.
    changes: u64,
    /// The newest stream that requested each type.
    streams: HashMap<String, Sender>,
    /// When the newest connection was accepted.
    accepted: Option<Instant>,
    /// When each type was first requested on the newest connection.
    first_requests: HashMap<String, Instant>,
    /// The version of each type that a client accepted last.
    acknowledged: HashMap<String, String>,
}

impl State {
    fn response(&self, type_url: &str) -> Option<DiscoveryResponse> {
        let version = self.changes.to_string();
        Some(DiscoveryResponse {
            type_url: type_url.to_owned(),
            resources: self.resources.get(type_url)?.clone(),
            nonce: version.clone(),
            version_info: version,
            ..DiscoveryResponse::default()
        })
    }

    /// Answers a new subscription; an acknowledgement needs no answer.
    fn on_request(&mut self, request: DiscoveryRequest, stream: &Sender) {
        let type_url = request.type_url;
        self.first_requests.entry(type_url.clone()).or_insert_with(Instant::now);
        self.streams.insert(type_url.clone(), stream.clone());
        self.acknowledged.insert(type_url.clone(), request.version_info);
        if request.response_nonce.is_empty()
            && let Some(response) = self.response(&type_url)
        {
            // Fails if the client has disconnected.
            let _ = stream.send(Ok(response));
        }
    }
}

type Shared = Arc<Mutex<State>>;

fn lock(state: &Shared) -> MutexGuard<'_, State> {
    state.lock().expect("the mutex is not poisoned")
}

/// A server; dropping it closes all its connections.
pub struct PushServer {
    pub address: SocketAddr,
    state: Shared,
    task: AbortHandle,
}

impl Drop for PushServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl PushServer {
    /// Starts a server at this address.
    ///
    /// # Panics
    /// If the address is in use.
    pub async fn listen(address: SocketAddr) -> Self {
        Self::try_listen(address).await.expect("the address is free")
    }

    /// Starts a server at this address.
    ///
    /// # Errors
    /// If the address is in use.
    pub async fn try_listen(address: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let state = Shared::default();
        let task = tokio::spawn(accept(listener, state.clone())).abort_handle();
        Ok(Self { address, state, task })
    }

    /// Sets the resources of a type, and sends them to the newest stream that requested it. Returns the
    /// time before that.
    pub fn push(&self, type_url: &str, resources: Vec<Any>) -> Instant {
        let mut state = lock(&self.state);
        state.changes += 1;
        state.resources.insert(type_url.to_owned(), resources);
        let (response, stream) = (state.response(type_url), state.streams.get(type_url).cloned());
        let begin = Instant::now();
        if let (Some(response), Some(stream)) = (response, stream) {
            // Fails if the client has disconnected.
            let _ = stream.send(Ok(response));
        }
        begin
    }

    /// Returns whether a client accepted the last version of a type, or replayed it.
    pub fn is_acknowledged(&self, type_url: &str) -> bool {
        let state = lock(&self.state);
        state.acknowledged.get(type_url).is_some_and(|version| *version == state.changes.to_string())
    }

    /// Returns when the newest connection was accepted.
    pub fn accepted(&self) -> Option<Instant> {
        lock(&self.state).accepted
    }

    /// Returns when this type was first requested on the newest connection.
    pub fn first_request(&self, type_url: &str) -> Option<Instant> {
        lock(&self.state).first_requests.get(type_url).copied()
    }
}

async fn accept(listener: TcpListener, state: Shared) {
    // The connections are aborted together with this task.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        // Fails only for a closed socket.
        let _ = stream.set_nodelay(true);
        {
            let mut state = lock(&state);
            state.accepted = Some(Instant::now());
            state.first_requests.clear();
        }
        let service = AggregatedDiscoveryServiceServer::new(Ads(state.clone()));
        let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
            let mut service = service.clone();
            async move { service.call(request).await }
        });
        connections.spawn(async move {
            // Fails when the client closes the connection.
            let _ = http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

struct Ads(Shared);

#[tonic::async_trait]
impl AggregatedDiscoveryService for Ads {
    type StreamAggregatedResourcesStream = Responses<DiscoveryResponse>;
    type DeltaAggregatedResourcesStream = Responses<DeltaDiscoveryResponse>;

    async fn stream_aggregated_resources(
        &self,
        request: Request<Streaming<DiscoveryRequest>>,
    ) -> Result<Response<Self::StreamAggregatedResourcesStream>, Status> {
        let (responses, queue) = mpsc::unbounded_channel();
        let (mut requests, state) = (request.into_inner(), self.0.clone());
        tokio::spawn(async move {
            while let Ok(Some(request)) = requests.message().await {
                lock(&state).on_request(request, &responses);
            }
        });
        Ok(Response::new(Box::pin(UnboundedReceiverStream::new(queue))))
    }

    async fn delta_aggregated_resources(
        &self,
        _: Request<Streaming<DeltaDiscoveryRequest>>,
    ) -> Result<Response<Self::DeltaAggregatedResourcesStream>, Status> {
        Err(Status::unimplemented("state of the world only"))
    }
}
