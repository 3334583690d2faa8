//! Decisions about HTTP callouts: gRPC checks and requests that follow a redirect. The response to
//! a callout arrives as a whole.

use std::time::Duration;

use probe::grpc_health::{GrpcResponse, MAX_RESPONSE_BYTES};
use probe::{Connection, GrpcMode, Reason, Request};

use super::{Callout, Decision, ProbeRequest, parse_status};
use crate::attributes::{Attribute, Attributes};
use crate::config::Config;
use crate::envoy_error;
use crate::prober_plan;

/// The number of bytes of a redirect's response body that are read, enough to recognize a local
/// reply of Envoy.
const REDIRECT_BODY_BYTES: usize = 256;
/// Envoy starts the timer of a callout at the beginning of the event loop iteration, so the callout
/// may time out a little before the probe's timeout has passed.
const TIMER_TOLERANCE: Duration = Duration::from_millis(50);

/// A request that follows a redirect.
#[derive(Debug)]
pub(super) struct RedirectRequest {
    request: Request,
    target: Vec<u8>,
    destination: String,
    requests: u32,
}

impl RedirectRequest {
    /// Prepares the request that follows after `requests` requests. The port is valid, because
    /// [`probe::Redirect`] has checked it.
    fn new(config: &Config, request: Request, requests: u32) -> Self {
        let destination = format!("{}:{}", config.pod_host, request.url.port().unwrap_or(0));
        Self {
            target: request.url.request_target(),
            destination,
            request,
            requests: requests.saturating_add(1),
        }
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
enum CalloutResult {
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
struct CalloutResponse {
    status: Option<Vec<u8>>,
    location: Option<Vec<u8>>,
    content_type: Option<Vec<u8>>,
    /// The `grpc-status` of the trailers, or of the headers if there are no trailers.
    grpc_status: Option<Vec<u8>>,
    /// The `grpc-message` of the trailers, or of the headers if there are no trailers.
    grpc_message: Option<Vec<u8>>,
    /// The length of the whole body in bytes.
    body_length: usize,
    /// The first bytes of the body.
    body: Vec<u8>,
}

impl CalloutResult {
    /// Reads the result of a gRPC check or of a redirect. `timeout` is the probe's timeout.
    fn read(is_grpc: bool, size: CalloutSize, timeout: Duration, envoy: &impl Attributes) -> Self {
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

impl ProbeRequest {
    /// Decides about the response to the current callout.
    pub fn on_callout_response(&mut self, size: CalloutSize, envoy: &impl Attributes) -> Decision<'_> {
        let redirect = self.redirect.take();
        let result = CalloutResult::read(redirect.is_none(), size, self.probe.plan.timeout, envoy);
        match &redirect {
            None => self.on_grpc_response(&result, envoy),
            Some(redirect) => self.on_redirect_response(redirect, &result, envoy),
        }
    }

    fn on_grpc_response(&mut self, result: &CalloutResult, envoy: &impl Attributes) -> Decision<'_> {
        let reason = grpc_reason(result);
        // The application may have closed a connection that was used before while the request was under
        // way, so the check is sent once more.
        let may_be_stale = reason == Reason::Closed && self.probe.plan.connection == Connection::KeepAlive;
        if !may_be_stale || self.is_repeated {
            return self.end(reason);
        }
        self.is_repeated = true;
        match self.remaining(envoy) {
            // The pool of the same cluster may still contain the connection that has just ended.
            Ok(timeout) => self.send(Connection::Close, timeout),
            Err(reason) => self.end(reason),
        }
    }

    fn on_redirect_response(
        &mut self,
        redirect: &RedirectRequest,
        result: &CalloutResult,
        envoy: &impl Attributes,
    ) -> Decision<'_> {
        let response = match result {
            CalloutResult::Failed { timed_out: true } => return self.end(Reason::Timeout),
            CalloutResult::Failed { timed_out: false } => return self.end(Reason::Redirect),
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
            return self.end(reason);
        }
        let RedirectRequest { request, requests, .. } = redirect;
        let next = self.redirect_of(request, status, response.location.as_deref(), *requests);
        match self.on_status(status, next, *requests, envoy) {
            // A callout's response is complete, so no body remains to be forwarded.
            Decision::ForwardStatus { status, reason } => Decision::LocalReply { status, reason },
            decision => decision,
        }
    }

    /// Follows a redirect after `requests` requests.
    pub(super) fn follow(
        &mut self,
        request: Request,
        requests: u32,
        envoy: &impl Attributes,
    ) -> Decision<'_> {
        let timeout = match self.remaining(envoy) {
            Ok(timeout) => timeout,
            Err(reason) => return self.end(reason),
        };
        let redirect = self.redirect.insert(RedirectRequest::new(&self.config, request, requests));
        let RedirectRequest { request, target, destination, .. } = redirect;
        let cluster = match request.url.scheme.as_slice() {
            b"https" => &self.config.clusters.https,
            _ => &self.config.clusters.http,
        };
        let headers = prober_plan::redirect_headers(request, target, &self.user_agent, destination);
        Decision::Callout(Callout { cluster, headers, body: b"", timeout })
    }
}

/// Returns the result of a gRPC check.
fn grpc_reason(result: &CalloutResult) -> Reason {
    let response = match result {
        CalloutResult::Failed { timed_out: true } => return Reason::Timeout,
        CalloutResult::Failed { timed_out: false } => return Reason::GrpcError,
        CalloutResult::Response(response) => response,
    };
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

#[cfg(test)]
mod tests;
