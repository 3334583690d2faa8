//! `grpc` probes: `grpc.health.v1.Health/Check` over plaintext HTTP/2. Every gRPC error status is a
//! failure, including UNIMPLEMENTED.

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, TE, USER_AGENT};
use hyper::{HeaderMap, Request, Response};
use probe::Reason;
use probe::grpc_health::{CHECK, GrpcResponse, MAX_RESPONSE_BYTES, request_message};
use workload_health::{HealthReason, Unhealthy};

use super::http_exchange;
use super::target::{self, Target};

const USER_AGENT_VALUE: &str = concat!("app-health-agent/", env!("CARGO_PKG_VERSION"));
const GRPC: &str = "application/grpc";
const GRPC_STATUS: &str = "grpc-status";
/// Names of the gRPC status codes, indexed by number.
const CODES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// Performs one call on a new connection.
pub(super) async fn probe(targets: &[Target], service: &str) -> Result<(), Unhealthy> {
    let stream = target::connect(targets).await?;
    let authority = targets.first().map_or_else(String::new, |target| target.address.to_string());
    let request = Request::post(format!("http://{authority}{CHECK}"))
        .header(CONTENT_TYPE, GRPC)
        .header(TE, "trailers")
        .header(USER_AGENT, USER_AGENT_VALUE)
        .body(Full::new(Bytes::from(request_message(service))))
        .map_err(|_| Unhealthy::new(HealthReason::CannotRun, "the gRPC request cannot be built"))?;
    http_exchange::http2(stream, request, read_response).await
}

async fn read_response(response: Response<Incoming>) -> Result<(), Unhealthy> {
    let (head, mut incoming) = response.into_parts();
    let (mut body, mut length, mut trailers) = (BytesMut::new(), 0, None);
    while let Some(frame) = incoming.frame().await {
        match frame.map_err(http_exchange::to_unhealthy)?.into_data() {
            Ok(data) => {
                length += data.len();
                let room = MAX_RESPONSE_BYTES.saturating_sub(body.len());
                body.extend_from_slice(&data[..room.min(data.len())]);
                if length > MAX_RESPONSE_BYTES {
                    return Err(bad("the health response is larger than 16 KiB"));
                }
            }
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    let header = |map: &HeaderMap, name: &str| map.get(name).map(|value| value.as_bytes().to_vec());
    let status = trailers.as_ref().and_then(|trailers| header(trailers, GRPC_STATUS));
    let status = status.or_else(|| header(&head.headers, GRPC_STATUS));
    let content_type = header(&head.headers, CONTENT_TYPE.as_str());
    evaluate(&GrpcResponse {
        content_type: content_type.as_deref(),
        grpc_status: status.as_deref(),
        body_length: length,
        body: &body,
    })
}

/// Evaluates a response. Unlike the filter, it reports the gRPC status code of a failed call.
fn evaluate(answer: &GrpcResponse) -> Result<(), Unhealthy> {
    let not_serving = |status: &str| {
        Err(Unhealthy::new(HealthReason::GrpcNotServing, &format!("gRPC health status {status}")))
    };
    let code = answer.grpc_status.and_then(|text| std::str::from_utf8(text).ok()?.parse::<u32>().ok());
    let is_grpc = answer.content_type.is_some_and(|value| value.starts_with(GRPC.as_bytes()));
    if let Some(code) = code.filter(|code| is_grpc && *code != 0) {
        let name = usize::try_from(code).ok().and_then(|code| CODES.get(code)).unwrap_or(&"(unknown code)");
        return Err(Unhealthy::new(HealthReason::GrpcStatus, &format!("gRPC status {code} {name}")));
    }
    match answer.reason() {
        Reason::Ok => Ok(()),
        Reason::GrpcNotServing => not_serving("NOT_SERVING"),
        Reason::GrpcServiceUnknown => not_serving("SERVICE_UNKNOWN"),
        Reason::GrpcUnknown => not_serving("UNKNOWN"),
        _ if is_grpc => Err(bad("the health response is missing or malformed")),
        _ => Err(bad("not a gRPC response")),
    }
}

fn bad(text: &str) -> Unhealthy {
    Unhealthy::new(HealthReason::BadResponse, text)
}

#[cfg(test)]
mod tests;
