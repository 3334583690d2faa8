//! Decides what to do with a request, with a response, with a chunk of a response body, and with
//! the response to a callout.
//!
//! [`crate::stream`] asks for the decisions, and [`crate::effects`] carries them out.

use std::rc::Rc;
use std::time::Duration;

use probe::path::PREFIXES;
use probe::user_agent::user_agent;
use probe::{Connection, Reason, Redirect, Request};

use crate::attributes::{Attribute, Attributes};
use crate::config::{self, Config, DeclaredProbe};
use crate::envoy_error;
use crate::permits::Permit;
use crate::prober_plan::{HeaderPairs, PlannedRequest};

mod body;
mod callout;

pub use body::{BodyFilter, ChunkEdit, SPACES};
pub use callout::CalloutSize;
use callout::RedirectRequest;

/// What the filter does after an event of Envoy.
#[derive(Debug, PartialEq, Eq)]
pub enum Decision<'a> {
    /// Envoy continues with the stream as it is.
    Continue,
    /// A route forwards the request.
    Forward {
        /// `address:port`, to which the route's cluster connects.
        destination: &'a str,
        /// They replace all request headers.
        headers: HeaderPairs<'a>,
    },
    /// The filter sends a callout and pauses the stream until it ends.
    Callout(Callout<'a>),
    /// A status, in 200 to 599, replaces the response headers. The application's body follows, emptied
    /// chunk by chunk.
    ForwardStatus { status: u16, reason: Reason },
    /// The filter sends a local reply with the reason as its body, and pauses the stream.
    LocalReply { status: u16, reason: Reason },
    /// The stream is reset, because this client, `address:port`, may not call the hook.
    RefuseHook { client: Vec<u8> },
    /// The stream is reset. A failed hook needs this, because kubelet treats any response as success
    /// of a hook.
    Reset(Reason),
}

/// The arguments of an HTTP callout.
#[derive(Debug, PartialEq, Eq)]
pub struct Callout<'a> {
    /// The name of the Envoy cluster.
    pub cluster: &'a str,
    /// The request headers, including the destination.
    pub headers: HeaderPairs<'a>,
    pub body: &'a [u8],
    /// The rest of the probe's timeout.
    pub timeout: Duration,
}

impl Decision<'static> {
    /// Returns a local reply for `reason`.
    fn reply(reason: Reason) -> Self {
        Self::LocalReply { status: reason.status(), reason }
    }
}

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
fn is_grpc(envoy: &impl Attributes) -> bool {
    const GRPC: &[u8] = b"application/grpc";
    let content_type = envoy.value(Attribute::RequestHeader("content-type"));
    content_type
        .is_some_and(|text| text.get(..GRPC.len()).is_some_and(|start| start.eq_ignore_ascii_case(GRPC)))
}

/// Decides about a request whose path is not declared.
pub fn on_undeclared(envoy: &impl Attributes) -> Decision<'static> {
    if is_grpc(envoy) { Decision::Reset(Reason::BadRequest) } else { Decision::reply(Reason::UnknownProbe) }
}

/// Returns the reason for which the filter rejects a declared probe's request.
fn reject(method: Option<&[u8]>, has_body: bool) -> Option<Reason> {
    match (method, has_body) {
        (Some(b"GET"), false) => None,
        (Some(b"GET"), true) => Some(Reason::BadRequest),
        _ => Some(Reason::Method),
    }
}

/// A request for a declared probe, and what the filter has sent to the application for it.
#[derive(Debug)]
pub struct ProbeRequest {
    config: Rc<Config>,
    probe: Rc<DeclaredProbe>,
    user_agent: Vec<u8>,
    /// The request of the current callout; `None` for a gRPC check.
    redirect: Option<RedirectRequest>,
    /// True after the gRPC check was sent again.
    is_repeated: bool,
}

impl ProbeRequest {
    pub fn new(config: &Rc<Config>, probe: &Rc<DeclaredProbe>) -> Self {
        Self {
            config: Rc::clone(config),
            probe: Rc::clone(probe),
            user_agent: Vec::new(),
            redirect: None,
            is_repeated: false,
        }
    }

    pub fn probe(&self) -> &DeclaredProbe {
        &self.probe
    }

    /// Returns the permit with which the probe begins, or how the request is rejected. `has_body` is
    /// true if the request does not end with its headers.
    pub fn admit(&self, envoy: &impl Attributes, has_body: bool) -> Result<Permit, Decision<'static>> {
        if is_grpc(envoy) {
            return Err(Decision::Reset(Reason::BadRequest));
        }
        let method = envoy.value(Attribute::RequestHeader(":method"));
        if let Some(reason) = reject(method.as_deref(), has_body) {
            return Err(Decision::reply(reason));
        }
        let client = || envoy.value(Attribute::SourceAddress).unwrap_or_default();
        if self.probe.plan.is_hook() {
            let client = client();
            if !self.config.may_call_hooks(&client) {
                return Err(Decision::RefuseHook { client });
            }
        }
        let permit = self.probe.permits.take(|| config::without_port(&client()).to_vec());
        permit.ok_or_else(|| self.end(Reason::Busy))
    }

    /// Decides how the first request is sent to the application.
    pub fn first_request(&mut self, envoy: &impl Attributes) -> Decision<'_> {
        let plan = &self.probe.plan;
        let kubelet = match plan.wants_user_agent() {
            true => envoy.value(Attribute::RequestHeader("user-agent")),
            false => None,
        };
        self.user_agent = user_agent(kubelet.as_deref(), plan.path.kind()).to_vec();
        self.send(plan.connection, plan.timeout)
    }

    /// Decides how the planned request is sent. `connection` and `timeout` are those of a gRPC check; a
    /// route has its own.
    fn send(&self, connection: Connection, timeout: Duration) -> Decision<'_> {
        let headers = self.probe.plan.headers(&self.user_agent);
        match &self.probe.plan.request {
            PlannedRequest::Http { destination, .. } | PlannedRequest::Tcp { destination } => {
                Decision::Forward { destination, headers }
            }
            PlannedRequest::Grpc { message, mode, .. } => {
                let cluster = callout::grpc_cluster(&self.config, *mode, connection);
                Decision::Callout(Callout { cluster, headers, body: message, timeout })
            }
        }
    }

    /// Decides about a response that came through a route.
    pub fn on_response(&mut self, envoy: &impl Attributes) -> Decision<'_> {
        let status = parse_status(envoy.value(Attribute::ResponseHeader(":status")).as_deref());
        let planned = &self.probe.plan.request;
        if status >= 400 {
            let details = envoy.value(Attribute::CodeDetails).unwrap_or_default();
            let failure = envoy.value(Attribute::TransportFailure).unwrap_or_default();
            match (planned, envoy_error::from_code_details(&details, &failure)) {
                (_, None) => {}
                // The connection was established and then closed; kubelet's TCP probe requires no more.
                (PlannedRequest::Tcp { .. }, Some(Reason::Closed)) => return Decision::reply(Reason::Ok),
                (_, Some(reason)) => return self.end(reason),
            }
        }
        match planned {
            PlannedRequest::Http { request, .. } => {
                let location = match Redirect::is_redirect_status(status) {
                    true => envoy.location(Attribute::ResponseHeader("location")),
                    false => None,
                };
                let redirect = self.redirect_of(request, status, location.as_deref(), 1);
                self.on_status(status, redirect, 1, envoy)
            }
            // Envoy's local 200: the connection was established.
            PlannedRequest::Tcp { .. } if status == 200 => Decision::reply(Reason::Ok),
            PlannedRequest::Tcp { .. } | PlannedRequest::Grpc { .. } => self.end(Reason::Configuration),
        }
    }

    /// Returns what follows the response to `request`. `requests` is the number of requests of this probe
    /// so far, including it. A request that Envoy cannot send is invalid.
    fn redirect_of(
        &self,
        request: &Request,
        status: u16,
        location: Option<&[u8]>,
        requests: u32,
    ) -> Redirect {
        let Config { pod_ip, proxy_ports, .. } = &*self.config;
        match Redirect::decide(request, status, location, requests, pod_ip, proxy_ports) {
            Redirect::Follow(next) if !next.url.is_sendable() => Redirect::Invalid,
            redirect => redirect,
        }
    }

    /// Decides about the status of the application. `redirect` counts for 300 to 399 only.
    fn on_status(
        &mut self,
        status: u16,
        redirect: Redirect,
        requests: u32,
        envoy: &impl Attributes,
    ) -> Decision<'_> {
        match (status, redirect) {
            (200..=299, _) => Decision::ForwardStatus { status, reason: Reason::Ok },
            (300..=399, Redirect::Final) => {
                Decision::ForwardStatus { status: 200, reason: Reason::OkRedirect }
            }
            (300..=399, Redirect::Follow(request)) => self.follow(*request, requests, envoy),
            (300..=399, Redirect::Invalid) => self.end(Reason::Redirect),
            (400..=599, _) => Decision::ForwardStatus { status, reason: Reason::Application },
            _ => self.end(Reason::Protocol),
        }
    }

    /// Returns the rest of the probe's timeout, or the reason with which the probe ends without it.
    fn remaining(&self, envoy: &impl Attributes) -> Result<Duration, Reason> {
        let elapsed = envoy.elapsed().ok_or(Reason::Configuration)?;
        let rest = self.probe.plan.timeout.checked_sub(elapsed);
        rest.filter(|rest| rest.as_millis() > 0).ok_or(Reason::Timeout)
    }

    /// Ends the probe with a local reply, or with a reset if it is a hook and `reason` a failure.
    pub fn end(&self, reason: Reason) -> Decision<'static> {
        let is_failed_hook = self.probe.plan.is_hook() && !reason.is_success();
        if is_failed_hook { Decision::Reset(reason) } else { Decision::reply(reason) }
    }
}

/// Parses a `:status`; returns 0 if it is not a number.
fn parse_status(status: Option<&[u8]>) -> u16 {
    status.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
