//! The Unix socket that Envoy connects to: HTTP/2, and the gRPC methods of ADS and SDS.

use std::convert::{Infallible, identity};
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Method, Request};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use serving::grpc::{Flow, MessageBody, Messages};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Duration, sleep};
use tonic::body::Body;
use tonic::{Code, Status};
use tracing::{debug, warn};
use xds::Variant;

use super::new_stream::NewStream;
use super::secrets::{self, Secrets};
use agent_state::metrics::Metrics;

const SECRETS_SOTW: &str = "/envoy.service.secret.v3.SecretDiscoveryService/StreamSecrets";
const SECRETS_DELTA: &str = "/envoy.service.secret.v3.SecretDiscoveryService/DeltaSecrets";
/// Maximum number of connections. Envoy opens one for ADS, and one for each secret of a worker.
const CONNECTIONS: usize = 64;
/// Maximum number of concurrent streams of a connection. Each secret has its own stream.
const STREAMS: u32 = 256;
/// HTTP/2 flow-control window in bytes, for each stream and for the connection.
const WINDOW: u32 = 64 << 10;
/// Bytes of a response that HTTP/2 buffers in addition to the peer's window.
const SEND_BUFFER: usize = 16 << 10;
/// Maximum size of a request's header list, in bytes.
const HEADERS: u32 = 8 << 10;
/// Maximum size of a request in bytes.
const REQUEST_LIMIT: usize = 4 << 20;
/// Pause after a failed accept, for example because the process has no free descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Where the requests of Envoy go.
#[derive(Clone)]
pub(super) struct Server {
    streams: mpsc::Sender<NewStream>,
    /// `None` if there are no certificates.
    secrets: Option<Secrets>,
    metrics: Arc<Metrics>,
    permits: Arc<Semaphore>,
}

impl Server {
    pub(super) fn new(
        streams: mpsc::Sender<NewStream>,
        secrets: Option<Secrets>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self { streams, secrets, metrics, permits: Arc::new(Semaphore::new(CONNECTIONS)) }
    }

    /// Accepts connections on all sockets until this is dropped.
    pub(super) async fn serve(self, listeners: Vec<UnixListener>) {
        let mut accepting: JoinSet<()> =
            listeners.into_iter().map(|listener| self.clone().accept(listener)).collect();
        while accepting.join_next().await.is_some() {}
    }

    async fn accept(self, listener: UnixListener) {
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    warn!(%error, "xDS connection not accepted");
                    sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let Ok(permit) = self.permits.clone().try_acquire_owned() else {
                warn!("xDS connection closed: {CONNECTIONS} connections are open");
                continue;
            };
            let server = self.clone();
            tokio::spawn(async move {
                server.connection(stream).await;
                drop(permit);
            });
        }
    }

    async fn connection(self, stream: UnixStream) {
        let service = service_fn(|request: Request<Incoming>| {
            let server = self.clone();
            async move { Ok::<_, Infallible>(server.handle(request).await) }
        });
        let served = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .max_send_buf_size(SEND_BUFFER)
            .max_header_list_size(HEADERS)
            .max_concurrent_streams(STREAMS)
            .serve_connection(TokioIo::new(stream), service)
            .await;
        if let Err(error) = served {
            debug!(%error, "xDS connection failed");
        }
    }

    async fn handle(self, request: Request<Incoming>) -> hyper::Response<Body> {
        let Self { streams, secrets, metrics, .. } = self;
        let error = |code, text: &str| Status::new(code, text).into_http();
        if request.method() != Method::POST {
            return error(Code::Unimplemented, "HTTP method must be POST");
        }
        let path = request.uri().path().to_owned();
        let requests = Messages::new(request.into_body(), REQUEST_LIMIT);
        // One message: besides it, HTTP/2 holds what Envoy has not read yet of those before.
        let (responses, sent) = mpsc::channel(1);
        let variant = match &*path {
            SECRETS_SOTW => Some(Variant::Sotw),
            SECRETS_DELTA => Some(Variant::Delta),
            path => Variant::of_path(path),
        };
        let Some(variant) = variant else { return error(Code::Unimplemented, "unknown method") };
        match (&*path, secrets) {
            (SECRETS_SOTW | SECRETS_DELTA, None) => {
                return error(Code::Unimplemented, "no certificates: --discovery-cert is not set");
            }
            (SECRETS_SOTW | SECRETS_DELTA, Some(secrets)) => {
                tokio::spawn(secrets::serve(variant, requests, responses, secrets, metrics));
            }
            _ => {
                if streams.send(NewStream { variant, requests, responses }).await.is_err() {
                    return error(Code::Unavailable, "the agent is terminating");
                }
            }
        }
        let mut response =
            hyper::Response::new(Body::new(MessageBody::of_response(sent, Flow::default(), identity)));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        response
    }
}
