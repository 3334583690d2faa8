//! The ADS stream to a discovery server.

use std::convert::identity;
use std::future::Future;
use std::pin::Pin;

use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue, TE, USER_AGENT};
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, Response, StatusCode};
use pacing::RateLimiter;
use serving::grpc::{MessageBody, Messages, Parts};
use tokio::sync::mpsc;
use tokio::time::{Duration, Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::{Code, Status};
use workload_health::health_report::printable;
use xds::Variant;

use crate::vm::report::connection::{self, Connection, ServerTarget};

/// Capacity of the queue of requests.
const REQUESTS: usize = 8;
/// Limits of a stream that Envoy uses.
const LIMITS: Limits = Limits { response: 32 << 20, burst: 1000, interval: Duration::from_millis(1) };

type Call = Pin<Box<dyn Future<Output = Result<Response<Incoming>, hyper::Error>> + Send>>;

/// Limits of what a server may send.
pub(in crate::vm) struct Limits {
    /// Maximum size of a response in bytes.
    pub(in crate::vm) response: usize,
    /// Number of responses that may arrive at once, and the interval of further ones.
    pub(in crate::vm) burst: u32,
    pub(in crate::vm) interval: Duration,
}

pub(super) enum UpstreamHandle {
    None,
    Connecting(AbortOnDropHandle<Result<Connection, String>>),
    Open(Box<OpenStream>),
}

pub(in crate::vm) struct OpenStream {
    variant: Variant,
    pub(in crate::vm) requests: mpsc::Sender<Result<Parts, Status>>,
    responses: Responses,
    limiter: RateLimiter,
    response_limit: usize,
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
        *self = Self::Open(Box::new(OpenStream::new(connection, variant, LIMITS)));
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
    /// Sends the head of the request.
    pub(in crate::vm) fn new(connection: Connection, variant: Variant, limits: Limits) -> Self {
        let Connection { peer, origin, mut requests, driver } = connection;
        let (sender, queue) = mpsc::channel(REQUESTS);
        let peer = (peer.to_string(), origin.to_string());
        let mut uri = origin.into_parts();
        uri.path_and_query = Some(PathAndQuery::from_static(variant.path()));
        let mut request = Request::new(Body::new(MessageBody::of_request(queue, identity)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri.try_into().expect("scheme and authority are those of the connection");
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(TE, HeaderValue::from_static("trailers"));
        let agent = concat!("app-health-agent/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        Self {
            variant,
            requests: sender,
            responses: Responses::Pending(requests.call(request)),
            limiter: RateLimiter::new(limits.interval, limits.burst),
            response_limit: limits.response,
            opened: Instant::now(),
            is_allowed: false,
            peer,
            _driver: driver,
        }
    }

    pub(in crate::vm) async fn next(&mut self) -> Result<bytes::Bytes, Status> {
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
            self.responses = Responses::Open(Messages::new(response.into_body(), self.response_limit));
        }
        let Responses::Open(messages) = &mut self.responses else { return std::future::pending().await };
        let message = messages.next().await?;
        self.is_allowed = false;
        Ok(message)
    }
}
