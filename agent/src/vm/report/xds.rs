//! One xDS stream to a discovery server, in either protocol variant (state of the world or
//! incremental). The module `report` decides when to send what.

use std::time::Duration;

use ::xds::Variant;
use ::xds::health::{self, HealthResponse};
use bytes::Bytes;
use serde_json::{Value, json};
use serving::grpc;
use tokio::sync::mpsc;
use tonic::Code;
use workload_health::State;
use workload_health::health_report::{APP_HEALTH_REPORT, printable};
use workload_health::reporter::Report;

pub use ::xds::Node;

use super::connection::Connection;
use crate::args::Xds;
use crate::vm::xds_proxy::upstream::{Limits, OpenStream};

/// Limits of a stream that Envoy does not use. An app-health server sends acknowledgements and probe
/// changes, a few per minute. Excess messages wait in the connection, so that no server can cause
/// unlimited probing, logging or CPU use.
const LIMITS: Limits = Limits { response: 1 << 20, burst: 50, interval: Duration::from_millis(100) };

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

impl Request {
    /// Encodes the request.
    pub fn encode(self, variant: Variant) -> Bytes {
        let request = match self {
            Self::First(node) => {
                health::first_request(node.encode("app-health-agent", env!("CARGO_PKG_VERSION")))
            }
            Self::Report { error, extension } => {
                let node = extension.map(|extension| {
                    let (id, report) = *extension;
                    let metadata = json!({ APP_HEALTH_REPORT: report });
                    Node { id, locality: None, metadata }.encode_identity()
                });
                health::report(error.as_deref(), node)
            }
            Self::AckOrNack { version, nonce, nack_reason } => {
                health::ack_or_nack(version, nonce, nack_reason.as_deref())
            }
        };
        request.encode(variant)
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
    /// Decodes a message. Returns `None` if it is not for the agent.
    pub fn decode(message: &Bytes, variant: Variant) -> Option<Self> {
        let response = ::xds::Response::parse(message, variant).ok()?;
        Some(match HealthResponse::new(&response)? {
            HealthResponse::Hello { version, nonce, content } => Self::Hello { version, nonce, content },
            HealthResponse::Acknowledged(version) => Self::Acknowledged(version),
        })
    }
}

/// Serves one stream on a connection until it ends: sends what arrives on `requests`, and passes
/// received messages to `responses`. When the last sender of `requests` is dropped, the client's
/// half of the stream is closed. After a GOAWAY the stream continues: istiod closes the connection
/// 10 s later, and an app-health server ends its streams itself.
pub async fn run_stream(
    connection: Connection,
    variant: Xds,
    mut requests: mpsc::Receiver<Request>,
    responses: mpsc::Sender<Response>,
) {
    let variant = variant.into();
    let mut stream = OpenStream::new(connection, variant, LIMITS);
    let mut to_server = Some(stream.requests.clone());
    let status = loop {
        tokio::select! {
            request = requests.recv(), if to_server.is_some() => match (request, &to_server) {
                (Some(request), Some(to_server)) => {
                    // Sending fails only if the stream has ended.
                    let _ = to_server.send(Ok(grpc::parts(request.encode(variant), Bytes::new()))).await;
                }
                _ => to_server = None,
            },
            message = stream.next() => match message {
                Ok(message) => if let Some(response) = Response::decode(&message, variant) {
                    // If the receiver is dropped, this task is aborted as well.
                    let _ = responses.send(response).await;
                }
                Err(status) => break status,
            }
        }
    };
    let rejected =
        matches!(status.code(), Code::PermissionDenied | Code::Unauthenticated | Code::InvalidArgument);
    let why = match status.code() {
        Code::Ok => "Unavailable: the server ended the stream".to_owned(),
        code => printable(&format!("{code:?}: {}", status.message())),
    };
    // Sending fails only if the receiver has closed the stream.
    let _ = responses.send(Response::Ended { rejected, why }).await;
}
