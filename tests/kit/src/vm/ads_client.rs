//! A client of ADS that sends and reads only what a test says.

use hyper::Request as HttpRequest;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serving::grpc::{self, MessageBody, Messages, Parts};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;
use xds::{Request, Response, Variant};

/// Maximum size of a response in bytes.
const RESPONSE: usize = 256 << 20;
/// Capacity of the queue of requests.
const REQUESTS: usize = 64;

/// An open stream; dropping it closes the connection.
pub struct AdsClient {
    pub variant: Variant,
    requests: mpsc::Sender<Result<Parts, Status>>,
    responses: Messages<Incoming>,
    _connection: AbortOnDropHandle<()>,
}

impl AdsClient {
    /// Opens a stream on a new connection. `window` is the flow-control window in bytes: what the server
    /// can send although nothing is read.
    ///
    /// # Errors
    /// If the server does not accept the stream.
    pub async fn open(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        variant: Variant,
        window: u32,
        first: &Request,
    ) -> Result<Self, Status> {
        let unavailable = |error: hyper::Error| Status::unavailable(format!("{error:?}"));
        let handshake = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(window)
            .initial_connection_window_size(window)
            .handshake(TokioIo::new(stream));
        let (mut sender, connection) = handshake.await.map_err(unavailable)?;
        let connection = tokio::spawn(async move {
            // Fails when the server closes the connection, which ends the responses too.
            let _ = connection.await;
        });
        let (requests, queue) = mpsc::channel(REQUESTS);
        // Servers of Go send no response headers before the first message.
        let first = grpc::parts(first.encode(variant), Bytes::new());
        requests.try_send(Ok(first)).expect("an empty queue has room");
        let request = HttpRequest::post(format!("http://discovery.test{}", variant.path()))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(MessageBody::of_request(queue, |parts| parts))
            .expect("a valid request");
        let response = sender.send_request(request).await.map_err(unavailable)?;
        if let Some(status) = Status::from_header_map(response.headers()) {
            return Err(status);
        }
        let responses = Messages::new(response.into_body(), RESPONSE);
        Ok(Self { variant, requests, responses, _connection: AbortOnDropHandle::new(connection) })
    }

    /// Sends a request, or waits until the server accepts one.
    ///
    /// # Errors
    /// If the stream has ended.
    pub async fn send(&self, request: &Request) -> Result<(), Status> {
        self.send_parts(grpc::parts(request.encode(self.variant), Bytes::new())).await
    }

    /// Sends a message without its last byte.
    ///
    /// # Errors
    /// If the stream has ended.
    pub async fn send_incomplete(&self, message: Bytes) -> Result<(), Status> {
        let [header, mut message, last] = grpc::parts(message, Bytes::new());
        message.truncate(message.len().saturating_sub(1));
        self.send_parts([header, message, last]).await
    }

    async fn send_parts(&self, parts: Parts) -> Result<(), Status> {
        let sent = self.requests.send(Ok(parts)).await;
        sent.map_err(|_| Status::unavailable("the stream has ended"))
    }

    /// Returns the next response.
    ///
    /// # Errors
    /// Returns the status that ended the stream, or that of a message that is no response.
    pub async fn next(&mut self) -> Result<Response, Status> {
        let message = self.responses.next().await?;
        Response::parse(&message, self.variant).map_err(|error| Status::internal(error.to_string()))
    }
}

/// Returns the first request for resources of a type on a stream, without a node.
pub fn request(type_url: &str, names: &[&str]) -> Request {
    let subscription = Request::subscription_to(names.iter().copied());
    Request { type_url: type_url.to_owned(), subscription, ..Request::default() }
}

/// Returns the request that accepts a response, and requests these resources.
pub fn acknowledgement(response: &Response, names: &[&str]) -> Request {
    let (version, nonce) = (response.version.clone(), response.nonce.clone());
    Request { version, nonce, ..request(&response.type_url, names) }
}
