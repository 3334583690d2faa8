//! What to do: with a request, with an answer, with a chunk of its body, with the answer to a callout.
//!
//! Values in, values out. The rim reads what it is asked to read, and does what it is told.

use std::rc::Rc;
use std::time::Duration;

use probe::path::PREFIXES;
use probe::{GrpcMode, Reason, Redirect, Request};

use crate::cause;
use crate::config::{Config, Probe};
use crate::plan::{self, Action, Pairs, Plan};

mod body;
mod callout;

pub use body::{BLANKS, Body, Chunk};
pub use callout::{CallResult, Hop, hop, on_check, on_hop};

/// Whose request it is.
#[derive(Debug)]
pub enum Target<'a> {
    /// Not ours: on to the routes.
    Pass,
    /// Below our prefixes, and not declared: answered in place.
    Unknown,
    /// A declared probe.
    Declared(&'a Rc<Probe>),
}

/// Finds the probe of a `:path`: what stands before the first `?`, byte for byte.
pub fn target<'a>(config: &'a Config, path: &[u8]) -> Target<'a> {
    let path = path.split(|byte| *byte == b'?').next().unwrap_or(path);
    match config.probe(path) {
        Some(probe) => Target::Declared(probe),
        None if PREFIXES.iter().any(|prefix| path.starts_with(prefix.as_bytes())) => Target::Unknown,
        None => Target::Pass,
    }
}

/// What is read of a declared probe's request.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// `:method`
    pub method: Option<&'a [u8]>,
    /// `User-Agent`, where the plan wants it.
    pub user_agent: Option<&'a [u8]>,
    /// Whether more than the head is to come.
    pub has_body: bool,
    /// Whether there is a place for one more probe of this kind.
    pub has_place: bool,
}

/// What becomes of a declared probe's request.
#[derive(Debug)]
pub enum Decision<'a> {
    /// Answered in place.
    Answer(Answer),
    /// Sent on by a route: the destination as filter state, the whole request head replaced.
    Forward {
        /// The argument of `set_envoy_filter_state`.
        state: &'a [u8],
        /// The request head.
        head: Pairs<'a>,
    },
    /// Asked by a callout, while the request waits.
    Call(Call<'a>),
}

/// A callout.
#[derive(Debug)]
pub struct Call<'a> {
    /// The cluster's name.
    pub cluster: &'a str,
    /// The request head, the destination among it.
    pub head: Pairs<'a>,
    /// The request's body.
    pub body: &'a [u8],
    /// What remains of the probe's timeout.
    pub timeout: Duration,
}

/// Decides about a declared probe's request.
pub fn on_request<'a>(config: &'a Config, plan: &'a Plan, head: RequestHead<'a>) -> Decision<'a> {
    if head.method != Some(b"GET") {
        return Decision::Answer(Answer::reply(Reason::Method));
    }
    if head.has_body {
        return Decision::Answer(Answer::reply(Reason::BadRequest));
    }
    if !head.has_place {
        return Decision::Answer(Answer::of(plan, Reason::Busy));
    }
    let user_agent = plan::user_agent(head.user_agent, plan.path.kind());
    match &plan.action {
        Action::Http { state, .. } | Action::Tcp { state, .. } => {
            Decision::Forward { state, head: plan.head(user_agent) }
        }
        Action::Grpc { frame, mode, .. } => Decision::Call(Call {
            cluster: match mode {
                GrpcMode::Plaintext => &config.clusters.grpc,
                GrpcMode::Tls => &config.clusters.grpc_tls,
            },
            head: plan.head(user_agent),
            body: frame,
            timeout: plan.timeout,
        }),
    }
}

/// What kubelet gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The application's status now, its body emptied as it comes.
    Stream {
        /// 200 to 599
        status: u16,
        /// For metrics and logs.
        reason: Reason,
    },
    /// An answer of our own.
    Reply {
        /// The status.
        status: u16,
        /// For the body, metrics and logs.
        reason: Reason,
    },
    /// No answer: the caller's connection is reset. kubelet takes any answer of a hook as success.
    Reset(Reason),
    /// Ask again, by a callout.
    Follow(Box<Request>),
}

impl Answer {
    /// Our own answer for `reason`.
    pub fn reply(reason: Reason) -> Self {
        Self::Reply { status: reason.status(), reason }
    }

    /// Our own answer to a probe of `plan`.
    pub fn of(plan: &Plan, reason: Reason) -> Self {
        if plan.is_hook() && !reason.is_success() { Self::Reset(reason) } else { Self::reply(reason) }
    }
}

/// What else has to be read of an answer, once its status is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Nothing.
    Nothing,
    /// The header `location`.
    Location,
    /// `response.code_details` and `upstream.transport_failure_reason`.
    Cause,
}

/// Says what [`on_response`] needs to know of an answer with this status.
pub fn ask(plan: &Plan, status: u16) -> Ask {
    match (&plan.action, status) {
        (Action::Http { .. }, status) if Redirect::is_asked_by(status) => Ask::Location,
        (_, ..400) => Ask::Nothing,
        _ => Ask::Cause,
    }
}

/// The head of an answer that came by a route.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResponseHead<'a> {
    /// 0 where it is no number.
    pub status: u16,
    /// If asked for.
    pub location: Option<&'a [u8]>,
    /// If asked for: `response.code_details`.
    pub details: &'a [u8],
    /// If asked for: `upstream.transport_failure_reason`.
    pub failure: &'a [u8],
}

/// Decides about the answer that came by a route.
pub fn on_response(config: &Config, plan: &Plan, head: ResponseHead) -> Answer {
    let envoys = match head.status {
        400.. => cause::of_details(head.details, head.failure),
        _ => None,
    };
    match (&plan.action, envoys) {
        // The connection stood, if not for long: kubelet asks for no more.
        (Action::Tcp { .. }, Some(Reason::Closed)) => Answer::reply(Reason::Ok),
        (_, Some(reason)) => Answer::of(plan, reason),
        (Action::Http { request, .. }, None) => {
            on_status(config, plan, request, 1, head.status, head.location)
        }
        // Envoy's own 200: the connection was made.
        _ if head.status == 200 => Answer::reply(Reason::Ok),
        _ => Answer::of(plan, Reason::Configuration),
    }
}

/// Decides about an answer of the application to the `requests`-th request of a probe.
fn on_status(
    config: &Config,
    plan: &Plan,
    request: &Request,
    requests: u32,
    status: u16,
    location: Option<&[u8]>,
) -> Answer {
    match status {
        200..=299 => Answer::Stream { status, reason: Reason::Ok },
        300..=399 => {
            match Redirect::of(request, status, location, requests, &config.pod_ip, &config.own_ports) {
                Redirect::Last => Answer::Stream { status: 200, reason: Reason::OkRedirect },
                Redirect::Follow(request) => Answer::Follow(request),
                Redirect::Broken => Answer::of(plan, Reason::Redirect),
            }
        }
        400..=599 => Answer::Stream { status, reason: Reason::Application },
        _ => Answer::of(plan, Reason::Protocol),
    }
}

/// A `:status`; 0 where it is no number.
pub fn parse_status(status: Option<&[u8]>) -> u16 {
    status.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
