//! The ADS stream to a discovery server.

use std::future::Future;
use std::pin::Pin;

use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue, TE, USER_AGENT};
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, Response, StatusCode};
use pacing::RateLimiter;
use tokio::sync::mpsc;
use tokio::time::{Duration, Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::{Code, Status};
use workload_health::health_report::printable;
use xds::Variant;

use super::frames::{MessageBody, Messages, Parts};
use super::server;
use crate::vm::report::connection::{self, Connection, ServerTarget};

/// Maximum size of a response in bytes.
const RESPONSE_LIMIT: usize = 32 << 20;
/// Capacity of the queue of requests.
const REQUESTS: usize = 8;
/// Number of responses that may arrive at once, and the interval of further ones.
const BURST: u32 = 1000;
const INTERVAL: Duration = Duration::from_millis(1);

type Call = Pin<Box<dyn Future<Output = Result<Response<Incoming>, hyper::Error>> + Send>>;

pub(super) enum UpstreamHandle {
    None,
    Connecting(AbortOnDropHandle<Result<Connection, String>>),
    Open(Box<OpenStream>),
}

pub(super) struct OpenStream {
    variant: Variant,
    pub(super) requests: mpsc::Sender<Parts>,
    responses: Responses,
    limiter: RateLimiter,
    opened: Instant,
    /// True if the limiter allows the next response.
    is_allowed: bool,
    /// Address of the server, and its name.
    pub(super) peer: (String, String),
    _driver: AbortOnDropHandle<()>,
}

/// A server may send the response headers as late as the first response.
enum Responses {
    Pending(Call),
    Open(Messages<Incoming>),
}

pub(super) enum UpstreamEvent {
    Connected(Connection),
    Response(bytes::Bytes),
    Closed { is_rejected: bool, reason: String },
}

impl UpstreamHandle {
    pub(super) fn connect(&mut self, targets: Vec<ServerTarget>, random: fastrand::Rng) {
        let task = tokio::spawn(async move { connection::connect(&targets, random).await });
        *self = Self::Connecting(AbortOnDropHandle::new(task));
    }

    /// Opens the stream on a connection.
    pub(super) fn open(&mut self, connection: Connection, variant: Variant) {
        let Connection { peer, origin, mut requests, driver } = connection;
        let (sender, queue) = mpsc::channel(REQUESTS);
        let peer = (peer.to_string(), origin.to_string());
        let path = match variant {
            Variant::Sotw => server::SOTW,
            Variant::Delta => server::DELTA,
        };
        let mut uri = origin.into_parts();
        uri.path_and_query = Some(PathAndQuery::from_static(path));
        let mut request = Request::new(Body::new(MessageBody::of_request(queue)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri.try_into().expect("scheme and authority are those of the connection");
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(TE, HeaderValue::from_static("trailers"));
        let agent = concat!("app-health-agent/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        *self = Self::Open(Box::new(OpenStream {
            variant,
            requests: sender,
            responses: Responses::Pending(requests.call(request)),
            limiter: RateLimiter::new(INTERVAL, BURST),
            opened: Instant::now(),
            is_allowed: false,
            peer,
            _driver: driver,
        }));
    }

    /// Returns the variant of the stream, which does not matter while there is none.
    pub(super) fn variant(&self) -> Variant {
        match self {
            Self::Open(stream) => stream.variant,
            Self::None | Self::Connecting(_) => Variant::Sotw,
        }
    }

    /// Returns the next event. This method is cancel safe.
    pub(super) async fn event(&mut self) -> UpstreamEvent {
        let transient =
            |reason: String| UpstreamEvent::Closed { is_rejected: false, reason: printable(&reason) };
        match self {
            Self::None => std::future::pending().await,
            Self::Connecting(task) => match task.await {
                Ok(Ok(connection)) => UpstreamEvent::Connected(connection),
                Ok(Err(reason)) => transient(reason),
                Err(error) => transient(error.to_string()),
            },
            Self::Open(stream) => match stream.next().await {
                Ok(message) => UpstreamEvent::Response(message),
                Err(status) => UpstreamEvent::Closed {
                    is_rejected: matches!(
                        status.code(),
                        Code::PermissionDenied | Code::Unauthenticated | Code::InvalidArgument
                    ),
                    reason: match status.code() {
                        Code::Ok => "the server ended the stream".to_owned(),
                        code => printable(&format!("{code:?}: {}", status.message())),
                    },
                },
            },
        }
    }
}

impl OpenStream {
    async fn next(&mut self) -> Result<bytes::Bytes, Status> {
        while !self.is_allowed {
            match self.limiter.take(self.opened.elapsed()) {
                Ok(()) => self.is_allowed = true,
                Err(ready) => sleep_until(self.opened + ready).await,
            }
        }
        if let Responses::Pending(call) = &mut self.responses {
            let response = call.await.map_err(|error| Status::unavailable(error.to_string()))?;
            if response.status() != StatusCode::OK {
                return Err(Status::unavailable(format!("HTTP status {}", response.status())));
            }
            if let Some(status) = Status::from_header_map(response.headers()) {
                return Err(status);
            }
            self.responses = Responses::Open(Messages::new(response.into_body(), RESPONSE_LIMIT));
        }
        let Responses::Open(messages) = &mut self.responses else { return std::future::pending().await };
        let message = messages.next().await?;
        self.is_allowed = false;
        Ok(message)
    }
}
