//! `grpc` probes: `grpc.health.v1.Health/Check` over plaintext HTTP/2. Every gRPC error status is a
//! failure, including UNIMPLEMENTED.

use std::time::Duration;

use probe::Reason;
use probe::grpc_health::request_message;
use prober::connected::{Call, Checked, Failed, Stream, check};
use workload_health::{HealthReason, Unhealthy};

use super::http::USER_AGENT;
use super::target::{self, Target};

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

/// Performs one call on a new connection, and once more if the application has not processed it.
pub(super) async fn probe(targets: &[Target], service: &str, timeout: Duration) -> Result<(), Unhealthy> {
    let authority = targets.first().map_or_else(String::new, |target| target.address.to_string());
    let call = Call {
        authority: &authority,
        scheme: "http",
        user_agent: USER_AGENT.as_bytes(),
        // The gRPC specification allows eight digits, which is enough for a day in milliseconds.
        timeout: &format!("{}m", timeout.as_millis()),
        message: &request_message(service),
    };
    let mut is_retry = false;
    loop {
        let stream = Stream::Plaintext(target::connect(targets).await?);
        match check(stream, call, is_retry).await {
            Ok(checked) => return evaluate(checked),
            Err(Failed::Unprocessed) => is_retry = true,
            Err(Failed::Connection(Reason::Closed) | Failed::Call(Reason::Closed)) => {
                return Err(target::broken_off());
            }
            Err(Failed::Connection(_) | Failed::Call(_)) => return Err(invalid()),
        }
    }
}

/// Evaluates a response. Unlike the filter, it reports the gRPC status code of a failed call.
fn evaluate(checked: Checked) -> Result<(), Unhealthy> {
    let not_serving = |status: &str| {
        Err(Unhealthy::new(HealthReason::GrpcNotServing, &format!("gRPC health status {status}")))
    };
    if let Some(code) = checked.status.filter(|code| *code != 0) {
        let name = usize::try_from(code).ok().and_then(|code| CODES.get(code)).unwrap_or(&"(unknown code)");
        return Err(Unhealthy::new(HealthReason::GrpcStatus, &format!("gRPC status {code} {name}")));
    }
    match checked.reason {
        Reason::Ok => Ok(()),
        Reason::GrpcNotServing => not_serving("NOT_SERVING"),
        Reason::GrpcServiceUnknown => not_serving("SERVICE_UNKNOWN"),
        Reason::GrpcUnknown => not_serving("UNKNOWN"),
        _ => Err(invalid()),
    }
}

fn invalid() -> Unhealthy {
    Unhealthy::new(HealthReason::BadResponse, "not a valid gRPC health response")
}

#[cfg(test)]
mod tests;
