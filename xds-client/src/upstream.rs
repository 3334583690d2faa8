//! The ADS stream to a discovery server.

use std::convert::identity;
use std::future::Future;
use std::pin::Pin;

use hyper::Response;
use hyper::body::Incoming;
use pacing::RateLimiter;
use serving::grpc::{MessageBody, Messages, Parts};
use tokio::sync::mpsc;
use tokio::time::{Duration, Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::{Code, Status};
use workload_health::text::printable;
use xds::Variant;

use super::connection::{self, Connection, ServerTarget};

/// Capacity of the queue of requests.
const REQUESTS: usize = 8;
/// Limits of a stream that Envoy uses, with responses of at most `response` bytes.
pub(super) fn envoy_limits(response: usize) -> Limits {
    Limits { response, burst: 1000, interval: Duration::from_millis(1) }
}
/// Limits of a stream that Envoy does not use. An app-health server sends acknowledgements and probe
/// changes, a few per minute. Excess messages wait in the connection, so that no server can cause
/// unlimited probing, logging or CPU use.
pub const ALONE_LIMITS: Limits =
    Limits { response: 1 << 20, burst: 50, interval: Duration::from_millis(100) };

type Call = Pin<Box<dyn Future<Output = Result<Response<Incoming>, hyper::Error>> + Send>>;

/// Limits of what a server may send.
pub struct Limits {
    /// Maximum size of a response in bytes.
    pub response: usize,
    /// Number of responses that may arrive at once, and the interval of further ones.
    pub burst: u32,
    pub interval: Duration,
}

pub(super) enum UpstreamHandle {
    None,
    Connecting(AbortOnDropHandle<Result<Connection, String>>),
    Open(Box<OpenStream>),
}

/// An open stream; dropping it closes its connection.
pub struct OpenStream {
    /// `None` once the client's half of the stream is closed.
    requests: Option<mpsc::Sender<Result<Parts, Status>>>,
    responses: Responses,
    limiter: RateLimiter,
    response_limit: usize,
    opened: Instant,
    /// True if the limiter allows the next response.
    is_allowed: bool,
    /// Address of the server.
    peer: String,
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
    pub(super) fn open(&mut self, connection: Connection, variant: Variant, limits: Limits) {
        *self = Self::Open(Box::new(OpenStream::new(connection, variant, limits)));
    }

    pub(super) fn requests(&self) -> Option<mpsc::Sender<Result<Parts, Status>>> {
        let Self::Open(stream) = self else { return None };
        stream.requests()
    }

    /// Closes the client's half of the stream after all queued requests.
    pub(super) fn half_close(&mut self) {
        if let Self::Open(stream) = self {
            stream.requests = None;
        }
    }

    /// Returns the address of the server.
    pub(super) fn peer(&self) -> Option<&str> {
        let Self::Open(stream) = self else { return None };
        Some(&stream.peer)
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
                    is_rejected: is_rejection(&status),
                    reason: match status.code() {
                        Code::Ok => "the server ended the stream".to_owned(),
                        code => printable(&format!("{code:?}: {}", status.message())),
                    },
                },
            },
        }
    }
}

/// Returns true if the server rejects this client, as it would reject another attempt.
pub fn is_rejection(status: &Status) -> bool {
    matches!(status.code(), Code::PermissionDenied | Code::Unauthenticated | Code::InvalidArgument)
}

impl OpenStream {
    /// Returns the queue of requests; `None` once the client's half of the stream is closed.
    pub fn requests(&self) -> Option<mpsc::Sender<Result<Parts, Status>>> {
        self.requests.clone()
    }

    /// Sends the head of the request.
    pub fn new(connection: Connection, variant: Variant, limits: Limits) -> Self {
        let (sender, queue) = mpsc::channel(REQUESTS);
        let body = Body::new(MessageBody::of_request(queue, identity));
        let request = connection.request(variant.path(), body);
        let Connection { peer, mut requests, driver, .. } = connection;
        Self {
            requests: Some(sender),
            responses: Responses::Pending(requests.call(request)),
            limiter: RateLimiter::new(limits.interval, limits.burst),
            response_limit: limits.response,
            opened: Instant::now(),
            is_allowed: false,
            peer: peer.to_string(),
            _driver: driver,
        }
    }

    /// Returns the next response. This method is cancel safe.
    ///
    /// # Errors
    /// Returns the status at the end of the stream, which is `Ok` if the server ended it without one.
    pub async fn next(&mut self) -> Result<bytes::Bytes, Status> {
        while !self.is_allowed {
            match self.limiter.take(self.opened.elapsed()) {
                Ok(()) => self.is_allowed = true,
                Err(ready) => sleep_until(self.opened + ready).await,
            }
        }
        if let Responses::Pending(call) = &mut self.responses {
            let response = call.await.map_err(|error| Status::unavailable(error.to_string()))?;
            if let Some(status) = connection::refusal(&response) {
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

#[cfg(test)]
mod tests;
