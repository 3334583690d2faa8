//! Decisions about HTTP callouts: gRPC checks and requests that follow a redirect. The response to
//! a callout arrives as a whole.

use std::time::Duration;

use probe::grpc_health::GrpcResponse;
use probe::{Reason, Request};

use super::{Callout, ProbeResponse, on_status, parse_status};
use crate::config::Config;
use crate::envoy_error;
use crate::prober_plan::{self, ProberPlan};

/// Returns the callout for a request that follows a redirect; `None` if the probe's timeout has
/// passed.
pub fn redirect_callout<'a>(
    config: &'a Config,
    redirect: &'a RedirectRequest,
    user_agent: &'a [u8],
    timeout: Duration,
    elapsed: Duration,
) -> Option<Callout<'a>> {
    let timeout = timeout.checked_sub(elapsed).filter(|left| left.as_millis() > 0)?;
    let cluster = match redirect.request.url.scheme.as_slice() {
        b"https" => &config.clusters.https,
        _ => &config.clusters.http,
    };
    let head =
        prober_plan::redirect_headers(&redirect.request, &redirect.target, user_agent, &redirect.destination);
    Some(Callout { cluster, head, body: b"", timeout })
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

/// The result of a callout.
#[derive(Clone, Copy, Debug)]
pub enum CalloutResult<'a> {
    /// The callout failed without headers: the response was incomplete at the timeout, too large,
    /// or malformed.
    Failed {
        /// True if the probe's timeout has passed.
        timed_out: bool,
    },
    /// A response, either the application's or a local reply of Envoy.
    Response {
        status: Option<&'a [u8]>,
        location: Option<&'a [u8]>,
        content_type: Option<&'a [u8]>,
        /// The `grpc-status` of the trailers, or of the headers if there are no trailers.
        grpc_status: Option<&'a [u8]>,
        /// The `grpc-message` of the trailers, or of the headers if there are no trailers.
        grpc_message: Option<&'a [u8]>,
        /// The length of the whole body in bytes.
        body_length: usize,
        /// The first bytes of the body.
        body: &'a [u8],
    },
}

/// Decides about the response to a gRPC check.
pub fn on_grpc_response(plan: &ProberPlan, result: CalloutResult) -> ProbeResponse {
    let reason = match result {
        CalloutResult::Failed { timed_out: true } => Reason::Timeout,
        CalloutResult::Failed { timed_out: false } => Reason::GrpcError,
        CalloutResult::Response { content_type, grpc_status, grpc_message, body_length, body, .. } => {
            let envoy_reason = match grpc_status {
                Some(b"0") | None => None,
                Some(_) => grpc_message.and_then(envoy_error::from_local_reply),
            };
            let answer = GrpcResponse { content_type, grpc_status, body_length, body };
            envoy_reason.unwrap_or_else(|| answer.reason())
        }
    };
    ProbeResponse::of(plan, reason)
}

/// Decides about the response to a request that followed a redirect.
pub fn on_redirect_response(
    config: &Config,
    plan: &ProberPlan,
    redirect: &RedirectRequest,
    result: CalloutResult,
) -> ProbeResponse {
    let answer = match result {
        CalloutResult::Failed { timed_out } => {
            ProbeResponse::of(plan, if timed_out { Reason::Timeout } else { Reason::Redirect })
        }
        CalloutResult::Response { status, location, body, .. } => {
            let status = parse_status(status);
            match envoy_error::from_local_reply(body).filter(|_| matches!(status, 502..=504)) {
                Some(reason) => ProbeResponse::of(plan, reason),
                None => on_status(config, plan, &redirect.request, redirect.requests, status, location),
            }
        }
    };
    match answer {
        // A callout's response is complete, so no body remains to be streamed.
        ProbeResponse::ForwardStatus { status, reason } => ProbeResponse::LocalReply { status, reason },
        answer => answer,
    }
}

#[cfg(test)]
mod tests;
