//! A discovery server that violates the protocol: it ignores what a client requests, and every stream
//! receives the same bytes.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use envoy_types::pb::envoy::config::core::v3::Locality;
use envoy_types::pb::envoy::config::endpoint::v3::{ClusterLoadAssignment, LocalityLbEndpoints};
use envoy_types::pb::envoy::service::discovery::v3::{DeltaDiscoveryResponse, DiscoveryResponse};
use envoy_types::pb::google::protobuf::Any;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use http_body_util::StreamBody;
use hyper::body::{Bytes, Frame, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use super::scripted_ads::CLUSTER_LOAD_ASSIGNMENT;

type Frames = BoxStream<'static, Result<Frame<Bytes>, Infallible>>;

#[derive(Clone, Debug)]
pub enum Fault {
    /// A message that is not a response.
    Garbage,
    /// The stream ends inside a message.
    Cut,
    /// The header of a message of 1 GiB.
    Huge,
    /// This response, as often as the client reads it, always with the same nonce.
    Repeated(Bytes),
}

impl Fault {
    /// Repeats a response of this type whose resource, of this size, is no protobuf message.
    pub fn malformed_resources(type_url: &str, size: usize) -> Self {
        Self::repeated(type_url, vec![0xff; size])
    }

    /// Repeats the endpoints of a cluster, which are valid and have about this size.
    pub fn endpoints(cluster: &str, size: usize) -> Self {
        let locality = Locality { region: "r".repeat(size), ..Locality::default() };
        let assignment = ClusterLoadAssignment {
            cluster_name: cluster.to_owned(),
            endpoints: vec![LocalityLbEndpoints { locality: Some(locality), ..Default::default() }],
            ..ClusterLoadAssignment::default()
        };
        Self::repeated(CLUSTER_LOAD_ASSIGNMENT, assignment.encode_to_vec())
    }

    /// Repeats an incremental response that removes so many resources.
    pub fn removed_names(type_url: &str, count: usize) -> Self {
        let response = DeltaDiscoveryResponse {
            type_url: type_url.to_owned(),
            nonce: "same".to_owned(),
            removed_resources: (0..count).map(|number| format!("n{number}")).collect(),
            ..DeltaDiscoveryResponse::default()
        };
        Self::Repeated(message(&response.encode_to_vec()))
    }

    fn repeated(type_url: &str, value: Vec<u8>) -> Self {
        let resource = Any { type_url: type_url.to_owned(), value };
        let response = DiscoveryResponse {
            type_url: type_url.to_owned(),
            version_info: "1".to_owned(),
            nonce: "same".to_owned(),
            resources: vec![resource],
            ..DiscoveryResponse::default()
        };
        Self::Repeated(message(&response.encode_to_vec()))
    }

    fn frames(&self) -> Frames {
        let frame = |bytes: &Bytes| Ok(Frame::data(bytes.clone()));
        match self {
            Self::Garbage => stream::iter([frame(&message(&[0xff; 64]))]).chain(stream::pending()).boxed(),
            Self::Cut => stream::iter([frame(&message(&[0xff; 64]).slice(..32))]).boxed(),
            Self::Huge => {
                let header = Bytes::from_static(&[0, 0x40, 0, 0, 0]);
                stream::iter([frame(&header)]).chain(stream::pending()).boxed()
            }
            Self::Repeated(message) => {
                stream::repeat(message.clone()).map(move |message| frame(&message)).boxed()
            }
        }
    }
}

/// Returns a message of gRPC: a flag, the length, and the content.
fn message(content: &[u8]) -> Bytes {
    let length = u32::try_from(content.len()).expect("a message of less than 4 GiB");
    [&[0][..], &length.to_be_bytes(), content].concat().into()
}

/// A server; dropping it closes all its connections.
pub struct FaultyAds {
    pub address: SocketAddr,
    streams: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for FaultyAds {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl FaultyAds {
    /// Starts a server in plaintext.
    ///
    /// # Panics
    /// If the address is in use.
    pub async fn listen(address: SocketAddr, fault: Fault) -> Self {
        let listener = TcpListener::bind(address).await.expect("the address is free");
        let address = listener.local_addr().expect("a bound listener has an address");
        let streams = Arc::new(AtomicUsize::new(0));
        let task = tokio::spawn(accept(listener, fault, streams.clone()));
        Self { address, streams, task }
    }

    /// Closes all connections and the listener. Afterwards another process can listen on its address.
    pub async fn stop(mut self) {
        self.task.abort();
        // The result is that the task was aborted.
        let _ = (&mut self.task).await;
    }

    /// Returns the number of streams so far.
    pub fn streams(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }
}

async fn accept(listener: TcpListener, fault: Fault, streams: Arc<AtomicUsize>) {
    // The connections are aborted together with the listener's task.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve(stream, fault.clone(), streams.clone()));
    }
}

async fn serve(stream: TcpStream, fault: Fault, streams: Arc<AtomicUsize>) {
    let service = service_fn(|_: Request<Incoming>| {
        streams.fetch_add(1, Ordering::Relaxed);
        let response = Response::builder().header("content-type", "application/grpc");
        let response = response.body(StreamBody::new(fault.frames())).expect("a valid response");
        async move { Ok::<_, Infallible>(response) }
    });
    // Fails when the client closes the connection.
    let _ = http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}
