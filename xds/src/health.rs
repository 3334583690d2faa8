//! The requests and responses about health between agent and discovery server.

use bytes::Bytes;
use serde_json::Value;

use crate::json::decode_struct;
use crate::type_url::{ENDPOINT, HEALTH_INFORMATION, PROBE};
use crate::{Request, Response, parse_any};

/// Status codes of `google.rpc.Code`.
const INVALID_ARGUMENT: u64 = 3;
const INTERNAL: u64 = 13;

/// Returns the first request of a stream that only reports health. It names no resource, so a server has
/// nothing to send for it.
pub fn first_request(node: Bytes) -> Request {
    Request { type_url: ENDPOINT.to_owned(), node: Some(node), ..Request::default() }
}

/// Returns a health report. The error says why the workload is unhealthy, and the node contains what
/// only app-health servers read.
pub fn report(error: Option<&str>, node: Option<Bytes>) -> Request {
    let error = error.map(|text| Request::status(INTERNAL, text));
    Request { type_url: HEALTH_INFORMATION.to_owned(), node, error, ..Request::default() }
}

/// Returns the response to a hello message. The error says why it is rejected.
pub fn ack_or_nack(version: String, nonce: String, error: Option<&str>) -> Request {
    let error = error.map(|text| Request::status(INVALID_ARGUMENT, text));
    Request { type_url: PROBE.to_owned(), version, nonce, error, ..Request::default() }
}

/// A response that belongs to the agent.
#[derive(Debug, Clone, PartialEq)]
pub enum HealthResponse {
    /// The hello message of an app-health server.
    Hello {
        version: String,
        nonce: String,
        /// The single resource as JSON; an error if it is not one `google.protobuf.Struct`.
        content: Result<Value, String>,
    },
    /// The server stored the report with this version, `<epoch>/<generation>`.
    Acknowledged(String),
}

impl HealthResponse {
    /// Returns `None` for responses that belong to Envoy.
    pub fn new(response: &Response) -> Option<Self> {
        let Response { type_url, version, nonce, .. } = response;
        match type_url.as_str() {
            HEALTH_INFORMATION => Some(Self::Acknowledged(version.clone())),
            PROBE => {
                let (version, nonce) = (version.clone(), nonce.clone());
                Some(Self::Hello { version, nonce, content: content(response) })
            }
            _ => None,
        }
    }
}

fn content(response: &Response) -> Result<Value, String> {
    let [resource] = &*response.resources else {
        return Err(format!("hello: expected one resource, got {}", response.resources.len()));
    };
    let decoded = parse_any(&resource.any).and_then(|(_, value)| decode_struct(&value));
    decoded.map_err(|error| format!("hello: not a google.protobuf.Struct: {error}"))
}

#[cfg(test)]
mod tests;
