//! Decisions about HTTP callouts: gRPC checks and requests that follow a redirect. The response to
//! a callout arrives as a whole.

use std::time::Duration;

use probe::grpc_health::{GrpcResponse, MAX_RESPONSE_BYTES};
use probe::{Connection, GrpcMode, Reason, Request};

use super::{Callout, ProbeResponse, on_status, parse_status};
use crate::attributes::{Attribute, Attributes};
use crate::config::Config;
use crate::envoy_error;
use crate::prober_plan::{self, PlannedRequest, ProberPlan};

/// The number of bytes of a redirect's response body that are read, enough to recognize a local
/// reply of Envoy.
const REDIRECT_BODY_BYTES: usize = 256;
/// Envoy starts the timer of a callout at the beginning of the event loop iteration, so the callout
/// may time out a little before the probe's timeout has passed.
const TIMER_TOLERANCE: Duration = Duration::from_millis(50);

/// Returns the rest of a probe's timeout; `None` if it has passed.
pub fn remaining(timeout: Duration, elapsed: Duration) -> Option<Duration> {
    timeout.checked_sub(elapsed).filter(|rest| rest.as_millis() > 0)
}

/// Returns the callout for a request that follows a redirect.
pub fn redirect_callout<'a>(
    config: &'a Config,
    redirect: &'a RedirectRequest,
    user_agent: &'a [u8],
    timeout: Duration,
) -> Callout<'a> {
    let RedirectRequest { request, target, destination, .. } = redirect;
    let cluster = match request.url.scheme.as_slice() {
        b"https" => &config.clusters.https,
        _ => &config.clusters.http,
    };
    let headers = prober_plan::redirect_headers(request, target, user_agent, destination);
    Callout { cluster, headers, body: b"", timeout }
}

/// A request that follows a redirect.
#[derive(Debug)]
pub struct RedirectRequest {
    request: Request,
    target: Vec<u8>,
    destination: String,
    requests: u32,
}

impl RedirectRequest {
    /// Prepares the request that follows after `requests` requests. The port is valid, because
    /// [`probe::Redirect`] has checked it.
    pub fn new(config: &Config, request: Request, requests: u32) -> Self {
        let destination = format!("{}:{}", config.pod_host, request.url.port().unwrap_or(0));
        Self {
            target: request.url.request_target(),
            destination,
            request,
            requests: requests.saturating_add(1),
        }
    }

    /// Returns the number of requests of the probe, including this one.
    pub fn requests(&self) -> u32 {
        self.requests
    }
}

/// The number of headers, body bytes and trailers of a callout's response. A failed callout has no
/// headers.
#[derive(Clone, Copy, Debug, Default)]
pub struct CalloutSize {
    pub headers: usize,
    pub body: usize,
    pub trailers: usize,
}

/// The result of a callout.
#[derive(Clone, Debug)]
pub enum CalloutResult {
    /// The callout failed without headers: the response was incomplete at the timeout, too large,
    /// or malformed.
    Failed {
        /// True if the probe's timeout has passed.
        timed_out: bool,
    },
    Response(CalloutResponse),
}

/// A response to a callout, either the application's or a local reply of Envoy. Only the fields that
/// matter for the kind of callout are set.
#[derive(Clone, Debug, Default)]
pub struct CalloutResponse {
    pub status: Option<Vec<u8>>,
    pub location: Option<Vec<u8>>,
    pub content_type: Option<Vec<u8>>,
    /// The `grpc-status` of the trailers, or of the headers if there are no trailers.
    pub grpc_status: Option<Vec<u8>>,
    /// The `grpc-message` of the trailers, or of the headers if there are no trailers.
    pub grpc_message: Option<Vec<u8>>,
    /// The length of the whole body in bytes.
    pub body_length: usize,
    /// The first bytes of the body.
    pub body: Vec<u8>,
}

impl CalloutResult {
    /// Reads the result of a gRPC check or of a redirect. `timeout` is the probe's timeout.
    pub fn read(is_grpc: bool, size: CalloutSize, timeout: Duration, envoy: &impl Attributes) -> Self {
        if size.headers == 0 {
            let is_over = |elapsed: Duration| elapsed.saturating_add(TIMER_TOLERANCE) >= timeout;
            return Self::Failed { timed_out: envoy.elapsed().is_some_and(is_over) };
        }
        let body = |max: usize| match size.body {
            0 => Vec::new(),
            length => envoy.value(Attribute::CalloutBody(max.min(length))).unwrap_or_default(),
        };
        let response = CalloutResponse { body_length: size.body, ..CalloutResponse::default() };
        if !is_grpc {
            return Self::Response(CalloutResponse {
                status: envoy.value(Attribute::CalloutHeader(":status")),
                location: envoy.location(Attribute::CalloutHeader("location")),
                grpc_message: envoy.value(Attribute::CalloutHeader("grpc-message")),
                body: body(REDIRECT_BODY_BYTES),
                ..response
            });
        }
        // A response that consists of headers only carries `grpc-status` there. If there is a body,
        // only the trailers can carry it.
        let trailer = |name| match (size.trailers, size.body) {
            (1.., _) => envoy.value(Attribute::CalloutTrailer(name)),
            (0, 0) => envoy.value(Attribute::CalloutHeader(name)),
            _ => None,
        };
        Self::Response(CalloutResponse {
            content_type: envoy.value(Attribute::CalloutHeader("content-type")),
            grpc_status: trailer("grpc-status"),
            grpc_message: trailer("grpc-message"),
            body: body(MAX_RESPONSE_BYTES),
            ..response
        })
    }
}

/// Decides about the response to a gRPC check.
pub fn on_grpc_response(plan: &ProberPlan, result: &CalloutResult) -> ProbeResponse {
    let reason = match result {
        CalloutResult::Failed { timed_out: true } => Reason::Timeout,
        CalloutResult::Failed { timed_out: false } => Reason::GrpcError,
        CalloutResult::Response(response) => {
            let grpc_status = response.grpc_status.as_deref();
            let envoy_reason = match grpc_status {
                Some(b"0") | None => None,
                Some(_) => response.grpc_message.as_deref().and_then(envoy_error::from_local_reply),
            };
            let health = GrpcResponse {
                content_type: response.content_type.as_deref(),
                grpc_status,
                body_length: response.body_length,
                body: &response.body,
            };
            envoy_reason.unwrap_or_else(|| health.reason())
        }
    };
    ProbeResponse::of(plan, reason)
}

/// Returns the name of the cluster of a gRPC check.
pub(super) fn grpc_cluster(config: &Config, mode: GrpcMode, connection: Connection) -> &str {
    let clusters = &config.clusters;
    match (mode, connection) {
        (GrpcMode::Plaintext, Connection::Close) => &clusters.grpc,
        (GrpcMode::Tls, Connection::Close) => &clusters.grpc_tls,
        (GrpcMode::Plaintext, Connection::KeepAlive) => &clusters.reuse_grpc,
        (GrpcMode::Tls, Connection::KeepAlive) => &clusters.reuse_grpc_tls,
    }
}

/// Returns true if a connection that was used before may be the cause of a failed gRPC check: the
/// application may have closed it while the request was under way.
pub fn may_be_stale(plan: &ProberPlan, response: &ProbeResponse) -> bool {
    plan.connection == Connection::KeepAlive && response.reason() == Some(Reason::Closed)
}

/// Returns the callout that repeats a gRPC check over a new connection; `None` for other probes. It
/// must not use the same cluster, whose pool may still contain the connection that has just ended.
pub fn repeated_grpc_check<'a>(
    config: &'a Config,
    plan: &'a ProberPlan,
    user_agent: &'a [u8],
    timeout: Duration,
) -> Option<Callout<'a>> {
    let PlannedRequest::Grpc { message, mode, .. } = &plan.request else { return None };
    let cluster = grpc_cluster(config, *mode, Connection::Close);
    Some(Callout { cluster, headers: plan.headers(user_agent), body: message, timeout })
}

/// Decides about the response to a request that followed a redirect.
pub fn on_redirect_response(
    config: &Config,
    plan: &ProberPlan,
    redirect: &RedirectRequest,
    result: &CalloutResult,
) -> ProbeResponse {
    let response = match result {
        CalloutResult::Failed { timed_out: true } => return ProbeResponse::of(plan, Reason::Timeout),
        CalloutResult::Failed { timed_out: false } => return ProbeResponse::of(plan, Reason::Redirect),
        CalloutResult::Response(response) => response,
    };
    let status = parse_status(response.status.as_deref());
    // Envoy answers a request with a `content-type` of gRPC in the form of gRPC.
    let local_reply = match status {
        502..=504 => Some(response.body.as_slice()),
        200 => response.grpc_message.as_deref(),
        _ => None,
    };
    if let Some(reason) = local_reply.and_then(envoy_error::from_local_reply) {
        return ProbeResponse::of(plan, reason);
    }
    let location = response.location.as_deref();
    match on_status(config, plan, &redirect.request, redirect.requests, status, location) {
        // A callout's response is complete, so no body remains to be forwarded.
        ProbeResponse::ForwardStatus { status, reason } => ProbeResponse::LocalReply { status, reason },
        response => response,
    }
}

#[cfg(test)]
mod tests;
