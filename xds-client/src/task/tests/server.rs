//! A control plane on loopback: a test accepts each stream, reads each request and sends each response.

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request as HttpRequest, Response as HttpResponse};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serving::grpc::{self, Flow, MessageBody, Messages};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;
use tonic::body::Body;
use xds::{Request, ResourceRef, ResponseHead, Variant};

pub(super) struct Server {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
}

/// A stream of the agent; dropping it closes the connection.
pub(super) struct Stream {
    pub(super) variant: Variant,
    /// The header of the request.
    pub(super) authorization: String,
    requests: Messages<Incoming>,
    responses: mpsc::Sender<Result<Bytes, Status>>,
    connection: AbortOnDropHandle<()>,
}

impl Server {
    pub(super) async fn start(tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        Self { listener, tls }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.listener.local_addr().expect("a bound listener")
    }

    /// Accepts a connection without a stream; false if the TLS handshake fails.
    pub(super) async fn handshake(&self) -> bool {
        let (stream, _) = self.listener.accept().await.expect("a connection");
        let acceptor = self.tls.as_ref().expect("a server with TLS");
        acceptor.accept(stream).await.is_ok()
    }

    /// Accepts a connection and its stream.
    pub(super) async fn accept(&self) -> Stream {
        let (stream, _) = self.listener.accept().await.expect("a connection");
        match &self.tls {
            Some(acceptor) => opened(acceptor.accept(stream).await.expect("a TLS handshake")).await,
            None => opened(stream).await,
        }
    }
}

async fn opened(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Stream {
    let (opened, mut streams) = mpsc::channel(1);
    let service = service_fn(move |request: HttpRequest<Incoming>| {
        let opened = opened.clone();
        async move {
            let (responses, queue) = mpsc::channel(8);
            let body = MessageBody::of_response(queue, Flow::default(), |message: Bytes| {
                grpc::parts(message, Bytes::new())
            });
            opened.send((request, responses)).await.expect("the test waits for the stream");
            let response = HttpResponse::builder().header(CONTENT_TYPE, "application/grpc");
            Ok::<_, Infallible>(response.body(Body::new(body)).expect("a valid response"))
        }
    });
    let connection = AbortOnDropHandle::new(tokio::spawn(async move {
        // Fails when the agent closes the connection.
        let _ =
            http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
    }));
    let (request, responses) = streams.recv().await.expect("a stream");
    let authorization = request.headers().get("authorization");
    Stream {
        variant: Variant::of_path(request.uri().path()).expect("the path of a stream"),
        authorization: authorization.map(|text| text.to_str().expect("text").to_owned()).unwrap_or_default(),
        requests: Messages::new(request.into_body(), 1 << 20),
        responses,
        connection,
    }
}

impl Stream {
    pub(super) async fn request(&mut self) -> Request {
        let message = self.requests.next().await.expect("a request");
        Request::parse(&message, self.variant).expect("a request")
    }

    /// Sends a response with these resources, whose nonce is its version.
    pub(super) async fn send(&self, type_url: &str, version: &str, resources: &[Bytes]) {
        let head = ResponseHead { type_url, version, nonce: version };
        let resources = resources.iter().map(|any| ResourceRef { name: "", version: "", any });
        self.send_bytes(head.encode(self.variant, resources, [])).await;
    }

    pub(super) async fn send_bytes(&self, message: Bytes) {
        self.responses.send(Ok(message)).await.expect("the stream is open");
    }

    /// Ends the stream, and waits until the agent has closed its connection.
    pub(super) async fn end(self, status: Status) {
        self.responses.send(Err(status)).await.expect("the stream is open");
        self.closed().await;
    }

    /// Waits until the agent has closed the connection.
    pub(super) async fn closed(self) {
        // The result is that of the task, which nothing aborts.
        let _ = self.connection.await;
    }
}
