//! Decides what to do with a request, with a response, with a chunk of a response body, and with
//! the response to a callout.
//!
//! [`crate::stream`] calls the functions.

use std::rc::Rc;
use std::time::Duration;

use probe::path::PREFIXES;
use probe::{Reason, Redirect, Request};

use crate::attributes::{Attribute, Attributes};
use crate::config::{Config, DeclaredProbe};
use crate::envoy_error;
use crate::prober_plan::{HeaderPairs, PlannedRequest, ProberPlan};

mod body;
mod callout;

pub use body::{BodyFilter, ChunkEdit, SPACES};
pub use callout::{
    CalloutResponse, CalloutResult, CalloutSize, RedirectRequest, may_be_stale, on_grpc_response,
    on_redirect_response, redirect_callout, remaining, repeated_grpc_check,
};

/// The probe to which a request belongs, if any.
#[derive(Debug)]
pub enum ProbeMatch<'a> {
    /// The request does not have a path of this filter; Envoy routes it as usual.
    None,
    /// The path has one of the filter's prefixes but is not declared; the filter answers the
    /// request itself.
    Undeclared,
    Declared(&'a Rc<DeclaredProbe>),
}

/// Finds the probe for a `:path`. The part before the first `?` must equal the declared path byte
/// for byte.
pub fn find_probe<'a>(config: &'a Config, path: &[u8]) -> ProbeMatch<'a> {
    let path = path.split(|byte| *byte == b'?').next().unwrap_or(path);
    match config.probe(path) {
        Some(probe) => ProbeMatch::Declared(probe),
        None if PREFIXES.iter().any(|prefix| path.starts_with(prefix.as_bytes())) => ProbeMatch::Undeclared,
        None => ProbeMatch::None,
    }
}

/// True for a request that Envoy regards as gRPC by its `content-type`. Envoy answers it with status
/// 200 whatever the reason, which kubelet would take for success.
pub fn is_grpc(content_type: Option<&[u8]>) -> bool {
    const GRPC: &[u8] = b"application/grpc";
    content_type.and_then(|text| text.get(..GRPC.len())).is_some_and(|start| start.eq_ignore_ascii_case(GRPC))
}

/// Returns the reason for which the filter rejects a declared probe's request.
pub fn reject(method: Option<&[u8]>, has_body: bool) -> Option<Reason> {
    match (method, has_body) {
        (Some(b"GET"), false) => None,
        (Some(b"GET"), true) => Some(Reason::BadRequest),
        _ => Some(Reason::Method),
    }
}

/// The first request of a probe to the application.
#[derive(Debug)]
pub enum FirstRequest<'a> {
    /// A route forwards the downstream request.
    Forward {
        /// `address:port`, to which the route's cluster connects.
        destination: &'a str,
        /// They replace all request headers.
        headers: HeaderPairs<'a>,
    },
    /// The filter sends a callout and pauses the downstream request until it ends.
    Callout(Callout<'a>),
}

/// The arguments of an HTTP callout.
#[derive(Debug)]
pub struct Callout<'a> {
    /// The name of the Envoy cluster.
    pub cluster: &'a str,
    /// The request headers, including the destination.
    pub headers: HeaderPairs<'a>,
    pub body: &'a [u8],
    /// The rest of the probe's timeout.
    pub timeout: Duration,
}

/// Returns the first request of a probe.
pub fn first_request<'a>(config: &'a Config, plan: &'a ProberPlan, user_agent: &'a [u8]) -> FirstRequest<'a> {
    let headers = plan.headers(user_agent);
    match &plan.request {
        PlannedRequest::Http { destination, .. } | PlannedRequest::Tcp { destination } => {
            FirstRequest::Forward { destination, headers }
        }
        PlannedRequest::Grpc { message, mode, .. } => {
            let cluster = callout::grpc_cluster(config, *mode, plan.connection);
            FirstRequest::Callout(Callout { cluster, headers, body: message, timeout: plan.timeout })
        }
    }
}

/// The response to kubelet, or a further request to the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeResponse {
    /// The status is sent now; the application's body follows, emptied chunk by chunk.
    ForwardStatus {
        /// A status in 200 to 599.
        status: u16,
        /// The reason for metrics and logs.
        reason: Reason,
    },
    /// The filter sends a local reply.
    LocalReply {
        status: u16,
        /// The reason for the body, metrics and logs.
        reason: Reason,
    },
    /// The downstream stream is reset. A failed hook needs this, because kubelet treats any
    /// response as success of a hook.
    Reset(Reason),
    /// The filter follows a redirect with a callout.
    FollowRedirect(Box<Request>),
}

impl ProbeResponse {
    /// Returns a local reply for `reason`.
    pub fn reply(reason: Reason) -> Self {
        Self::LocalReply { status: reason.status(), reason }
    }

    /// Returns the reason with which the probe ends; `None` if it continues.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::ForwardStatus { reason, .. } | Self::LocalReply { reason, .. } | Self::Reset(reason) => {
                Some(*reason)
            }
            Self::FollowRedirect(_) => None,
        }
    }

    /// Returns a local reply for `reason`, or a reset if `plan` is a hook and `reason` a failure.
    pub fn of(plan: &ProberPlan, reason: Reason) -> Self {
        if plan.is_hook() && !reason.is_success() { Self::Reset(reason) } else { Self::reply(reason) }
    }
}

/// Decides about a response that came through a route.
pub fn on_response(config: &Config, plan: &ProberPlan, envoy: &impl Attributes) -> ProbeResponse {
    let status = parse_status(envoy.value(Attribute::ResponseHeader(":status")).as_deref());
    if status >= 400 {
        let details = envoy.value(Attribute::CodeDetails).unwrap_or_default();
        let failure = envoy.value(Attribute::TransportFailure).unwrap_or_default();
        match (&plan.request, envoy_error::from_code_details(&details, &failure)) {
            (_, None) => {}
            // The connection was established and then closed; kubelet's TCP probe requires no more.
            (PlannedRequest::Tcp { .. }, Some(Reason::Closed)) => return ProbeResponse::reply(Reason::Ok),
            (_, Some(reason)) => return ProbeResponse::of(plan, reason),
        }
    }
    match &plan.request {
        PlannedRequest::Http { request, .. } => {
            let location = match Redirect::is_redirect_status(status) {
                true => envoy.location(Attribute::ResponseHeader("location")),
                false => None,
            };
            on_status(config, plan, request, 1, status, location.as_deref())
        }
        // Envoy's local 200: the connection was established.
        _ if status == 200 => ProbeResponse::reply(Reason::Ok),
        _ => ProbeResponse::of(plan, Reason::Configuration),
    }
}

/// Decides about the application's response. `requests` is the number of requests of this probe so
/// far, including the one that was answered.
fn on_status(
    config: &Config,
    plan: &ProberPlan,
    request: &Request,
    requests: u32,
    status: u16,
    location: Option<&[u8]>,
) -> ProbeResponse {
    match status {
        200..=299 => ProbeResponse::ForwardStatus { status, reason: Reason::Ok },
        300..=399 => {
            match Redirect::decide(request, status, location, requests, &config.pod_ip, &config.proxy_ports) {
                Redirect::Final => ProbeResponse::ForwardStatus { status: 200, reason: Reason::OkRedirect },
                Redirect::Follow(request) => ProbeResponse::FollowRedirect(request),
                Redirect::Invalid => ProbeResponse::of(plan, Reason::Redirect),
            }
        }
        400..=599 => ProbeResponse::ForwardStatus { status, reason: Reason::Application },
        _ => ProbeResponse::of(plan, Reason::Protocol),
    }
}

/// Parses a `:status`; returns 0 if it is not a number.
fn parse_status(status: Option<&[u8]>) -> u16 {
    status.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
