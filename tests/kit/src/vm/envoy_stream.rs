//! A stream of state of the world as an Envoy opens it on the agent's socket or at a control plane, with a
//! client that reads only when a test says so.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;

use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3::{DiscoveryRequest, DiscoveryResponse};
use envoy_types::pb::google::rpc::Status;
use futures_util::StreamExt as _;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::Request;
use hyper::body::{Bytes, Frame, Incoming};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_stream::wrappers::UnboundedReceiverStream;

use crate::wait;

/// The header of a message of gRPC: a flag, and the length in four bytes.
const HEADER: usize = 5;
/// Flow-control window in bytes: what the agent can send although nothing is read.
const WINDOW: u32 = 64 << 10;

/// An open stream; dropping it closes the connection.
pub struct EnvoyStream {
    requests: mpsc::UnboundedSender<Bytes>,
    responses: Incoming,
    unread: Vec<u8>,
    connection: AbortHandle,
}

impl Drop for EnvoyStream {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl EnvoyStream {
    /// Opens a stream on the agent's socket and requests these resources.
    ///
    /// # Panics
    /// If the socket accepts no stream.
    pub async fn open(socket: &Path, type_url: &str, names: &[&str]) -> Self {
        // The file exists before the socket accepts connections.
        let what = || format!("the agent listens on {}", socket.display());
        let stream = wait::until_some(what, async || UnixStream::connect(socket).await.ok()).await;
        Self::over(stream, type_url, names).await
    }

    /// Opens a stream on a port of a control plane and requests these resources.
    ///
    /// # Panics
    /// If the port accepts no stream.
    pub async fn open_tcp(address: SocketAddr, type_url: &str, names: &[&str]) -> Self {
        let stream = TcpStream::connect(address).await.expect("the control plane listens");
        stream.set_nodelay(true).expect("an open socket");
        Self::over(stream, type_url, names).await
    }

    async fn over(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        type_url: &str,
        names: &[&str],
    ) -> Self {
        let handshake = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .handshake(TokioIo::new(stream));
        let (mut sender, connection) = handshake.await.expect("the server speaks HTTP/2");
        let connection = tokio::spawn(async move {
            // Fails when the server closes the connection, which ends the responses too.
            let _ = connection.await;
        })
        .abort_handle();
        let (requests, queue) = mpsc::unbounded_channel();
        let first = DiscoveryRequest {
            node: Some(Node { id: "scripted".to_owned(), ..Node::default() }),
            type_url: type_url.to_owned(),
            resource_names: names.iter().map(|name| (*name).to_owned()).collect(),
            ..DiscoveryRequest::default()
        };
        // Servers of Go send no response headers before the first message.
        let _ = requests.send(message(&first));
        let frames = UnboundedReceiverStream::new(queue).map(|bytes| Ok::<_, Infallible>(Frame::data(bytes)));
        let path = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";
        let request = Request::post(format!("http://agent{path}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(StreamBody::new(frames))
            .expect("a valid request");
        let response =
            timeout(wait::timeout(), sender.send_request(request)).await.expect("a response in time");
        let responses = response.expect("the server accepts the stream").into_body();
        Self { requests, responses, unread: Vec::new(), connection }
    }

    /// Requests resources of another type.
    pub fn subscribe(&self, type_url: &str, names: &[&str]) {
        self.request(&DiscoveryRequest {
            type_url: type_url.to_owned(),
            resource_names: names.iter().map(|name| (*name).to_owned()).collect(),
            ..DiscoveryRequest::default()
        });
    }

    fn request(&self, request: &DiscoveryRequest) {
        // Fails if the server has ended the stream.
        let _ = self.requests.send(message(request));
    }

    /// Accepts a response, and requests the same resources.
    pub fn acknowledge(&self, response: &DiscoveryResponse, names: &[&str]) {
        self.request(&DiscoveryRequest {
            type_url: response.type_url.clone(),
            version_info: response.version_info.clone(),
            response_nonce: response.nonce.clone(),
            resource_names: names.iter().map(|name| (*name).to_owned()).collect(),
            ..DiscoveryRequest::default()
        });
    }

    /// Rejects a response with this text, and requests the same resources.
    pub fn reject(&self, response: &DiscoveryResponse, names: &[&str], text: &str) {
        self.request(&DiscoveryRequest {
            type_url: response.type_url.clone(),
            response_nonce: response.nonce.clone(),
            resource_names: names.iter().map(|name| (*name).to_owned()).collect(),
            error_detail: Some(Status { message: text.to_owned(), ..Status::default() }),
            ..DiscoveryRequest::default()
        });
    }

    /// Reads the next response.
    ///
    /// # Panics
    /// If the stream ends before, or no response arrives in time.
    pub async fn response(&mut self) -> DiscoveryResponse {
        loop {
            if let Some(([_, length @ ..], content)) = self.unread.split_first_chunk::<HEADER>() {
                let length = usize::try_from(u32::from_be_bytes(*length)).expect("a 64-bit machine");
                if let Some(content) = content.get(..length) {
                    let response = DiscoveryResponse::decode(content).expect("a response");
                    self.unread.drain(..HEADER + length);
                    return response;
                }
            }
            let frame = timeout(wait::timeout(), self.responses.frame()).await.expect("a response in time");
            let data = frame.expect("the stream is open").expect("an intact connection").into_data();
            self.unread.extend_from_slice(&data.expect("no end of the stream"));
        }
    }
}

/// Returns a message of gRPC.
fn message(request: &DiscoveryRequest) -> Bytes {
    let content = request.encode_to_vec();
    let length = u32::try_from(content.len()).expect("a short request");
    [&[0][..], &length.to_be_bytes(), &content].concat().into()
}
