//! Decisions about HTTP callouts: gRPC checks and requests that follow a redirect. The response to
//! a callout arrives as a whole.

use std::time::Duration;

use probe::grpc_health::Answer as GrpcAnswer;
use probe::{Reason, Request};

use super::{Answer, Call, on_status, parse_status};
use crate::cause;
use crate::config::Config;
use crate::plan::{self, Plan};

/// Returns the callout for a request that follows a redirect; `None` if the probe's timeout has
/// passed.
pub fn hop<'a>(
    config: &'a Config,
    hop: &'a Hop,
    user_agent: &'a [u8],
    timeout: Duration,
    elapsed: Duration,
) -> Option<Call<'a>> {
    let timeout = timeout.checked_sub(elapsed).filter(|left| left.as_millis() > 0)?;
    let cluster = match hop.request.url.scheme.as_slice() {
        b"https" => &config.clusters.https,
        _ => &config.clusters.http,
    };
    let head = plan::hop_head(&hop.request, &hop.target, user_agent, &hop.destination);
    Some(Call { cluster, head, body: b"", timeout })
}

/// A request that follows a redirect.
#[derive(Debug)]
pub struct Hop {
    request: Request,
    target: Vec<u8>,
    destination: String,
    requests: u32,
}

impl Hop {
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
pub enum CallResult<'a> {
    /// The callout failed without headers: the response was incomplete at the timeout, too large,
    /// or malformed.
    Failed {
        /// True if the probe's timeout has passed.
        late: bool,
    },
    /// A response, either the application's or a local reply of Envoy.
    Answered {
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
pub fn on_check(plan: &Plan, result: CallResult) -> Answer {
    let reason = match result {
        CallResult::Failed { late: true } => Reason::Timeout,
        CallResult::Failed { late: false } => Reason::GrpcError,
        CallResult::Answered { content_type, grpc_status, grpc_message, body_length, body, .. } => {
            let envoys = match grpc_status {
                Some(b"0") | None => None,
                Some(_) => grpc_message.and_then(cause::of_text),
            };
            let answer = GrpcAnswer { content_type, grpc_status, body_length, body };
            envoys.unwrap_or_else(|| answer.reason())
        }
    };
    Answer::of(plan, reason)
}

/// Decides about the response to a request that followed a redirect.
pub fn on_hop(config: &Config, plan: &Plan, hop: &Hop, result: CallResult) -> Answer {
    let answer = match result {
        CallResult::Failed { late } => {
            Answer::of(plan, if late { Reason::Timeout } else { Reason::Redirect })
        }
        CallResult::Answered { status, location, body, .. } => {
            let status = parse_status(status);
            match cause::of_text(body).filter(|_| matches!(status, 502..=504)) {
                Some(reason) => Answer::of(plan, reason),
                None => on_status(config, plan, &hop.request, hop.requests, status, location),
            }
        }
    };
    match answer {
        // A callout's response is complete, so no body remains to be streamed.
        Answer::Stream { status, reason } => Answer::Reply { status, reason },
        answer => answer,
    }
}

#[cfg(test)]
mod tests;
