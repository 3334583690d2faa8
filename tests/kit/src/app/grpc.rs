//! gRPC health servers: a real one, and one that sends scripted responses.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::TcpListenerStream;
use tonic_health::server::HealthReporter;

/// A server that stops when this is dropped.
pub struct GrpcApp {
    pub address: SocketAddr,
    task: AbortHandle,
}

impl Drop for GrpcApp {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl GrpcApp {
    /// Starts a real health server; the reporter sets the serving status.
    pub async fn real(address: SocketAddr) -> (Self, HealthReporter) {
        Self::real_unless(address, || false).await
    }

    /// Like [`GrpcApp::real`], but the server does not respond on new connections while `hangs` is
    /// true.
    pub async fn real_unless(
        address: SocketAddr,
        hangs: impl Fn() -> bool + Send + 'static,
    ) -> (Self, HealthReporter) {
        let (reporter, service) = tonic_health::server::health_reporter();
        let listener = TcpListener::bind(address).await.expect("the application's port is free");
        let address = listener.local_addr().expect("a bound listener has an address");
        let server = tonic::transport::Server::builder().add_service(service);
        let connections = TcpListenerStream::new(listener).filter_map(move |connection| match connection {
            Ok(mut stream) if hangs() => {
                tokio::spawn(
                    async move { while stream.read(&mut [0; 1024]).await.is_ok_and(|size| size > 0) {} },
                );
                None
            }
            other => Some(other),
        });
        let task = tokio::spawn(async move {
            server.serve_with_incoming(connections).await.expect("serving does not fail");
        });
        (Self { address, task: task.abort_handle() }, reporter)
    }

    /// Starts a server that sends the same response to every request.
    pub async fn scripted(ip: IpAddr, acceptor: Option<TlsAcceptor>, answer: GrpcAnswer) -> Self {
        Self::limited(ip, acceptor, answer, usize::MAX).await
    }

    /// Like [`GrpcApp::scripted`], but the server closes a connection that has had `max_requests`
    /// when the next request arrives.
    pub async fn limited(
        ip: IpAddr,
        acceptor: Option<TlsAcceptor>,
        answer: GrpcAnswer,
        max_requests: usize,
    ) -> Self {
        let listener = TcpListener::bind((ip, 0)).await.expect("cannot bind a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, answer) = (acceptor.clone(), answer.clone());
                tokio::spawn(async move {
                    let (requests, over) = (AtomicUsize::new(0), Arc::new(Notify::new()));
                    let closes = Arc::clone(&over);
                    let service = service_fn(move |request| {
                        let is_over = requests.fetch_add(1, Ordering::Relaxed) >= max_requests;
                        let (closes, answer) = (Arc::clone(&closes), answer.clone());
                        async move {
                            if is_over {
                                closes.notify_one();
                                std::future::pending::<()>().await;
                            }
                            respond(request, answer).await
                        }
                    });
                    let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                    // Errors of a connection are caused by the client and show in its verdict.
                    let connection = async {
                        match acceptor {
                            None => builder.serve_connection(TokioIo::new(stream), service).await,
                            Some(acceptor) => match acceptor.accept(stream).await {
                                Ok(stream) => builder.serve_connection(TokioIo::new(stream), service).await,
                                Err(_) => Ok(()),
                            },
                        }
                    };
                    tokio::select! {
                        _ = connection => {}
                        () = over.notified() => {}
                    }
                });
            }
        });
        Self { address, task: task.abort_handle() }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }
}

/// A scripted HTTP/2 response.
#[derive(Clone, Debug)]
pub struct GrpcAnswer {
    /// The pseudo-header `:status`.
    pub status: u16,
    pub headers: Vec<(&'static str, &'static str)>,
    /// The body, sent in one DATA frame.
    pub body: Vec<u8>,
    /// The trailers; if empty, none are sent.
    pub trailers: Vec<(&'static str, &'static str)>,
}

impl GrpcAnswer {
    /// Returns a response with this message in a gRPC frame, and `grpc-status: 0`.
    pub fn message(message: &[u8]) -> Self {
        let length = u32::try_from(message.len()).expect("a short message").to_be_bytes();
        Self {
            status: 200,
            headers: vec![("content-type", "application/grpc")],
            body: [[0].as_slice(), &length, message].concat(),
            trailers: vec![("grpc-status", "0")],
        }
    }

    /// Returns a response with this serving status.
    pub fn serving(status: u8) -> Self {
        Self::message(&[8, status])
    }

    /// Returns a response that consists only of headers, with this `grpc-status`.
    pub fn trailers_only(status: &'static str) -> Self {
        Self {
            headers: vec![("content-type", "application/grpc"), ("grpc-status", status)],
            body: Vec::new(),
            trailers: Vec::new(),
            status: 200,
        }
    }
}

type Body = http_body_util::combinators::BoxBody<Bytes, Infallible>;

async fn respond(request: Request<Incoming>, answer: GrpcAnswer) -> Result<Response<Body>, Infallible> {
    let _ = request.into_body().collect().await;
    let pairs = |pairs: &[(&'static str, &'static str)]| -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    };
    let body = if answer.trailers.is_empty() {
        Full::new(Bytes::from(answer.body)).boxed()
    } else {
        let trailers = Frame::trailers(pairs(&answer.trailers));
        let frames = [Ok(Frame::data(Bytes::from(answer.body))), Ok(trailers)];
        StreamBody::new(tokio_stream::iter(frames)).boxed()
    };
    let mut response = Response::new(body);
    *response.status_mut() = hyper::StatusCode::from_u16(answer.status).expect("a status");
    *response.headers_mut() = pairs(&answer.headers);
    Ok(response)
}
