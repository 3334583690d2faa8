//! A control plane that serves the resources of a test in both variants. It trusts versions: what a client
//! names with the current version on its first request is not sent again. It sends a changed type at once,
//! without waiting for the acknowledgement of the response before.

mod stream;

use std::collections::BTreeMap;
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
use futures_util::{Stream, StreamExt as _};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::codegen::Service as _;
use tonic::{Request, Response, Status, Streaming};

use super::scripted_ads::HEALTH_INFORMATION;
use stream::{Answer, OneStream};

/// A request of a client.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The number of the stream, from 0.
    pub stream: usize,
    pub type_url: String,
    /// The `version_info`; empty in the incremental variant.
    pub version: String,
    pub nonce: String,
    /// Text of the `error_detail`.
    pub error: Option<String>,
    /// The `initial_resource_versions` of the incremental variant.
    pub initial: BTreeMap<String, String>,
    subscribe: Vec<String>,
    unsubscribe: Vec<String>,
}

/// The resources of one type.
#[derive(Clone, Debug, Default)]
struct Collection {
    version: String,
    resources: BTreeMap<String, Any>,
}

type Collections = BTreeMap<String, Collection>;

#[derive(Debug)]
struct Shared {
    collections: watch::Sender<Collections>,
    seen: Mutex<Vec<Seen>>,
    streams: Mutex<usize>,
    refuses_reports: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("the mutex is not poisoned")
}

/// A server; dropping it closes all its connections.
pub struct VersionedAds {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    task: AbortHandle,
}

impl Drop for VersionedAds {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl VersionedAds {
    /// Starts a server in plaintext. One that refuses reports ends every stream that carries one.
    ///
    /// # Panics
    /// If the address is in use.
    pub async fn listen(address: SocketAddr, refuses_reports: bool) -> Self {
        let listener = TcpListener::bind(address).await.expect("the address is free");
        let address = listener.local_addr().expect("a bound listener has an address");
        let shared = Arc::new(Shared {
            collections: watch::Sender::default(),
            seen: Mutex::default(),
            streams: Mutex::default(),
            refuses_reports,
        });
        let task = tokio::spawn(accept(listener, shared.clone())).abort_handle();
        Self { address, shared, task }
    }

    /// Replaces the resources of a type and sends them to its subscribers.
    pub fn set(&self, type_url: &str, version: &str, resources: &[(&str, Any)]) {
        let resources = resources.iter().map(|(name, any)| ((*name).to_owned(), any.clone())).collect();
        let collection = Collection { version: version.to_owned(), resources };
        self.shared.collections.send_modify(|collections| {
            collections.insert(type_url.to_owned(), collection);
        });
    }

    /// Returns all requests of a type so far.
    pub fn seen(&self, type_url: &str) -> Vec<Seen> {
        lock(&self.shared.seen).iter().filter(|seen| seen.type_url == type_url).cloned().collect()
    }

    /// Returns the number of streams so far.
    pub fn streams(&self) -> usize {
        *lock(&self.shared.streams)
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // The connections are aborted together with the listener's task.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve(stream, shared.clone()));
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let service = AggregatedDiscoveryServiceServer::new(Ads(shared));
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let mut service = service.clone();
        async move { service.call(request).await }
    });
    // Fails when the client closes the connection.
    let _ = http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}

struct Ads(Arc<Shared>);

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;
type Requests = Pin<Box<dyn Stream<Item = Seen> + Send>>;

#[tonic::async_trait]
impl AggregatedDiscoveryService for Ads {
    type StreamAggregatedResourcesStream = Answers<DiscoveryResponse>;
    type DeltaAggregatedResourcesStream = Answers<DeltaDiscoveryResponse>;

    async fn stream_aggregated_resources(
        &self,
        request: Request<Streaming<DiscoveryRequest>>,
    ) -> Result<Response<Self::StreamAggregatedResourcesStream>, Status> {
        let requests = request.into_inner().filter_map(async |message| message.ok().map(stream::from_sotw));
        let answers = self.answers(Box::pin(requests), false);
        Ok(Response::new(Box::pin(answers.map(|answer| answer.map(Answer::into_sotw)))))
    }

    async fn delta_aggregated_resources(
        &self,
        request: Request<Streaming<DeltaDiscoveryRequest>>,
    ) -> Result<Response<Self::DeltaAggregatedResourcesStream>, Status> {
        let requests = request.into_inner().filter_map(async |message| message.ok().map(stream::from_delta));
        let answers = self.answers(Box::pin(requests), true);
        Ok(Response::new(Box::pin(answers.map(|answer| answer.map(Answer::into_delta)))))
    }
}

impl Ads {
    fn answers(&self, requests: Requests, is_delta: bool) -> UnboundedReceiverStream<Result<Answer, Status>> {
        let (sender, answers) = mpsc::unbounded_channel();
        let number = {
            let mut streams = lock(&self.0.streams);
            *streams += 1;
            *streams - 1
        };
        tokio::spawn(run(self.0.clone(), number, requests, OneStream::new(number, is_delta), sender));
        UnboundedReceiverStream::new(answers)
    }
}

/// Serves one stream until it ends.
async fn run(
    shared: Arc<Shared>,
    number: usize,
    mut requests: Requests,
    mut stream: OneStream,
    answers: mpsc::UnboundedSender<Result<Answer, Status>>,
) {
    let mut changes = shared.collections.subscribe();
    loop {
        let produced = tokio::select! {
            () = answers.closed() => return,
            _ = changes.changed() => stream.changed(&changes.borrow_and_update()),
            seen = requests.next() => {
                let Some(seen) = seen else { return };
                let seen = Seen { stream: number, ..seen };
                lock(&shared.seen).push(seen.clone());
                if shared.refuses_reports && seen.type_url == HEALTH_INFORMATION {
                    let _ = answers.send(Err(Status::invalid_argument("unknown type")));
                    return;
                }
                stream.request(&seen, &changes.borrow()).into_iter().collect()
            }
        };
        for answer in produced {
            // Fails if the client has disconnected.
            let _ = answers.send(Ok(answer));
        }
    }
}
