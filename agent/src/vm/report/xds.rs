//! One xDS stream to a discovery server, in either protocol variant (state of the world or
//! incremental). Only this module and its child use Envoy's protobuf types; the module `report`
//! decides when to send what.

mod messages;

use std::time::Duration;

use bytes::Bytes;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use envoy_types::pb::envoy::service::discovery::v3::{DeltaDiscoveryResponse, DiscoveryResponse};
use pacing::RateLimiter;
use prost::Message as _;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};
use workload_health::State;
use workload_health::health_report::printable;
use workload_health::reporter::Report;
use ::xds::Variant;

use super::connection::Connection;
use crate::args::Xds;
use messages::{encode_identity, from_delta, from_sotw, to_delta, to_sotw};

/// Size limit of a message from the server, in bytes.
const MESSAGE_LIMIT: usize = 1024 * 1024;
/// Number of messages from the server that may arrive at once.
const MESSAGE_BURST: u32 = 50;
/// One message per interval after a burst. An app-health server sends acknowledgements and probe
/// changes, a few per minute.
const MESSAGE_INTERVAL: Duration = Duration::from_millis(100);
/// The node that this agent identifies itself with.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Node ID in the form `sidecar~<ip>~<hostname>.<namespace>~<namespace>.svc.cluster.local`.
    pub id: String,
    /// Region, zone and sub-zone; an unknown one is empty.
    pub locality: Option<[String; 3]>,
    /// JSON object with Istio's metadata fields and those of app-health.
    pub metadata: Value,
}

/// A message from the agent to the server.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// The first request of a stream.
    First(Box<Node>),
    Report {
        /// Why the workload is unhealthy; `None` if it is healthy.
        error: Option<String>,
        /// Node ID and app-health report as JSON; `None` towards istiod.
        extension: Option<Box<(String, Value)>>,
    },
    /// The response to a hello message (ACK or NACK).
    AckOrNack {
        version: String,
        /// Nonce of the hello message.
        nonce: String,
        /// Why the hello message is rejected; `None` for an ACK.
        nack_reason: Option<String>,
    },
}

impl Node {
    /// Encodes the node without the name of a program, so that it can be merged into Envoy's node.
    pub fn encode_identity(self) -> Bytes {
        encode_identity(self).into()
    }
}

impl Request {
    /// Encodes the request for a stream that Envoy has opened.
    pub fn encode(self, variant: Variant) -> Bytes {
        match variant {
            Variant::Sotw => to_sotw(self).encode_to_vec().into(),
            Variant::Delta => to_delta(self).encode_to_vec().into(),
        }
    }

    /// Creates the request for a health report of the node with this ID.
    pub fn report(report: Report, node_id: &str) -> Self {
        match report {
            Report::Istio { healthy, message } => {
                Self::Report { error: (!healthy).then_some(message), extension: None }
            }
            Report::AppHealth(report) => Self::Report {
                error: (report.state != State::Healthy).then(|| report.message.clone()),
                extension: Some(Box::new((node_id.to_owned(), report.to_json()))),
            },
        }
    }
}

/// A message from the server that the agent handles.
#[derive(Debug, Clone, PartialEq)]
pub enum Response {
    /// The hello message of an app-health server.
    Hello {
        version: String,
        nonce: String,
        /// The single resource as JSON; an error if it is not one `google.protobuf.Struct`.
        content: Result<Value, String>,
    },
    /// The server stored the report with this version, `<epoch>/<generation>`.
    Acknowledged(String),
    /// The stream has ended; this is the last response.
    Ended {
        /// True if the server rejected this client.
        rejected: bool,
        /// The server's status message, or the cause of a broken connection.
        why: String,
    },
}

impl Response {
    /// Decodes a message of a stream that Envoy has opened. Returns `None` if it is not for the agent.
    pub fn decode(message: &Bytes, variant: Variant) -> Option<Self> {
        match variant {
            Variant::Sotw => DiscoveryResponse::decode(message.clone()).ok().and_then(from_sotw),
            Variant::Delta => DeltaDiscoveryResponse::decode(message.clone()).ok().and_then(from_delta),
        }
    }
}

/// Serves one stream on a connection until it ends: sends what arrives on `requests`, and passes
/// received messages to `responses`. When the last sender of `requests` is dropped, the client's
/// half of the stream is closed. After a GOAWAY the stream continues: istiod closes the connection
/// 10 s later, and an app-health server ends its streams itself.
pub async fn run_stream(
    connection: Connection,
    variant: Xds,
    requests: mpsc::Receiver<Request>,
    responses: mpsc::Sender<Response>,
) {
    let Connection { origin, requests: service, driver, .. } = connection;
    let mut client = AggregatedDiscoveryServiceClient::with_origin(service, origin)
        .max_decoding_message_size(MESSAGE_LIMIT);
    let requests = ReceiverStream::new(requests);
    // The calls return when the response headers arrive. That may never happen, because istiod
    // sends nothing on such a stream.
    let status = match variant {
        Xds::Sotw => {
            let stream = client.stream_aggregated_resources(requests.map(to_sotw)).await;
            receive(stream, from_sotw, &responses).await
        }
        Xds::Delta => {
            let stream = client.delta_aggregated_resources(requests.map(to_delta)).await;
            receive(stream, from_delta, &responses).await
        }
    };
    drop(driver);
    let rejected =
        matches!(status.code(), Code::PermissionDenied | Code::Unauthenticated | Code::InvalidArgument);
    let why = printable(&status_text(&status));
    // Sending fails only if the receiver has closed the stream.
    let _ = responses.send(Response::Ended { rejected, why }).await;
}

/// Passes the messages of a stream to `responses` and returns why the stream has ended.
async fn receive<M>(
    stream: Result<tonic::Response<Streaming<M>>, Status>,
    convert: fn(M) -> Option<Response>,
    responses: &mpsc::Sender<Response>,
) -> Status {
    let mut stream = match stream {
        Ok(response) => response.into_inner(),
        Err(status) => return status,
    };
    let mut pace = Pace::new();
    loop {
        let message = match stream.message().await {
            Ok(Some(message)) => message,
            Ok(None) => return Status::unavailable("the server ended the stream"),
            Err(status) => return status,
        };
        pace.wait().await;
        if let Some(response) = convert(message) {
            // If the receiver is dropped, this task is aborted as well.
            let _ = responses.send(response).await;
        }
    }
}

/// Rate limit for messages from the server. Excess messages wait in the connection, so that no
/// server can cause unlimited probing, logging or CPU use.
struct Pace {
    limiter: RateLimiter,
    opened: Instant,
}

impl Pace {
    fn new() -> Self {
        Self { limiter: RateLimiter::new(MESSAGE_INTERVAL, MESSAGE_BURST), opened: Instant::now() }
    }

    /// Waits until one more message may be read.
    async fn wait(&mut self) {
        while let Err(ready) = self.limiter.take(self.opened.elapsed()) {
            sleep_until(self.opened + ready).await;
        }
    }
}

/// Returns the server's status message, or the root cause of a broken connection.
fn status_text(status: &Status) -> String {
    let mut cause = std::error::Error::source(status);
    while let Some(inner) = cause.and_then(std::error::Error::source) {
        cause = Some(inner);
    }
    let code = status.code();
    match cause {
        Some(cause) => format!("{code:?}: {cause}"),
        None => format!("{code:?}: {}", status.message()),
    }
}
