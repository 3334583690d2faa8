//! The state machine of one HTTP stream. Each event of Envoy is a method that returns the
//! [`Effect`] to carry out; the caller reports a failed effect with [`Stream::on_failure`].

use std::rc::Rc;

use probe::{Reason, Request};

use crate::attributes::{Attribute, Attributes};
use crate::config::{Config, DeclaredProbe};
use crate::decision::{
    self, BodyFilter, Callout, CalloutResult, CalloutSize, ChunkEdit, FirstRequest, ProbeMatch,
    ProbeResponse, RedirectRequest,
};
use crate::envoy_error;
use crate::prober_plan::{self, HeaderPairs};

mod orphans;

pub use orphans::Orphans;

/// What the host does after an event.
#[derive(Debug)]
pub enum Effect<'a> {
    /// Envoy continues with the stream as it is.
    Continue,
    /// A route forwards the request. The host sets the filter state before the headers: without it,
    /// the `ORIGINAL_DST` cluster would connect to the address that the downstream connection was
    /// made to.
    Forward {
        /// The argument of `set_envoy_filter_state`.
        filter_state: &'a [u8],
        /// They replace all request headers.
        headers: HeaderPairs<'a>,
    },
    /// The host sends a callout, reports its token with [`Stream::callout_started`], and pauses the
    /// stream.
    Callout(Callout<'a>),
    /// The host replaces the response headers by this status, records the result and continues.
    ForwardStatus { status: u16, probe: Rc<DeclaredProbe>, reason: Reason },
    /// The host records the result, sends a local reply and pauses. `probe` is `None` if the path
    /// is not declared.
    LocalReply { status: u16, probe: Option<Rc<DeclaredProbe>>, reason: Reason },
    /// The host records the result, resets the stream and pauses.
    Reset { probe: Rc<DeclaredProbe>, reason: Reason },
}

/// One HTTP stream.
#[derive(Debug, Default)]
pub struct Stream {
    state: State,
    in_flight: Option<InFlight>,
}

#[derive(Debug, Default)]
enum State {
    /// The stream awaits its request headers, or nothing any more.
    #[default]
    Idle,
    /// The stream awaits the response headers of a route.
    AwaitsResponse,
    /// The stream awaits the rest of a response body.
    ForwardsBody(BodyFilter),
    /// The stream awaits the response to a callout; the token is unknown until the callout has
    /// started.
    AwaitsCallout(Option<u32>),
}

/// A probe in flight. Dropping it frees its slot.
#[derive(Debug)]
struct InFlight {
    config: Rc<Config>,
    probe: Rc<DeclaredProbe>,
    user_agent: Vec<u8>,
    /// The request of the current callout; `None` for a gRPC check.
    redirect: Option<RedirectRequest>,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.probe.stats.release();
    }
}

impl Stream {
    /// `has_body` is true if the request does not end with its headers.
    pub fn on_request_headers(
        &mut self,
        config: &Rc<Config>,
        envoy: &impl Attributes,
        has_body: bool,
    ) -> Effect<'_> {
        let Some(path) = envoy.value(Attribute::RequestHeader(":path")) else { return Effect::Continue };
        let probe = match decision::find_probe(config, &path) {
            ProbeMatch::None => return Effect::Continue,
            ProbeMatch::Undeclared => {
                let reason = Reason::UnknownProbe;
                return Effect::LocalReply { status: reason.status(), probe: None, reason };
            }
            ProbeMatch::Declared(probe) => Rc::clone(probe),
        };
        let method = envoy.value(Attribute::RequestHeader(":method"));
        if let Some(reason) = decision::reject(method.as_deref(), has_body) {
            return Effect::LocalReply { status: reason.status(), probe: Some(probe), reason };
        }
        let plan = &probe.plan;
        if !probe.stats.acquire() {
            return ended(ProbeResponse::of(plan, Reason::Busy), Rc::clone(&probe));
        }
        let kubelet = match plan.wants_user_agent() {
            true => envoy.value(Attribute::RequestHeader("user-agent")),
            false => None,
        };
        let user_agent = prober_plan::user_agent(kubelet.as_deref(), plan.path.kind()).to_vec();
        let in_flight = InFlight { config: Rc::clone(config), probe, user_agent, redirect: None };
        let in_flight = self.in_flight.insert(in_flight);
        let InFlight { config, probe, user_agent, .. } = in_flight;
        match decision::first_request(config, &probe.plan, user_agent) {
            FirstRequest::Forward { filter_state, headers } => {
                self.state = State::AwaitsResponse;
                Effect::Forward { filter_state, headers }
            }
            FirstRequest::Callout(callout) => {
                self.state = State::AwaitsCallout(None);
                Effect::Callout(callout)
            }
        }
    }

    pub fn on_response_headers(&mut self, envoy: &impl Attributes) -> Effect<'_> {
        let (State::AwaitsResponse, Some(in_flight)) = (&self.state, &self.in_flight) else {
            return Effect::Continue;
        };
        let response = decision::on_response(&in_flight.config, &in_flight.probe.plan, envoy);
        self.respond(response, 1, envoy)
    }

    /// `size` is the length of the chunk in bytes; `end` is true for the last one. If the host cannot
    /// replace a chunk, it resets the stream: the application's body must not leave the Pod.
    pub fn on_response_body(&mut self, size: usize, end: bool) -> ChunkEdit {
        match &mut self.state {
            State::ForwardsBody(body) => body.on_chunk(size, end),
            _ => ChunkEdit::Keep,
        }
    }

    pub fn callout_started(&mut self, token: u32) {
        if let State::AwaitsCallout(current) = &mut self.state {
            *current = Some(token);
        }
    }

    /// Returns true if the stream awaits the response to the callout with this token.
    pub fn awaits(&self, token: u32) -> bool {
        matches!(self.state, State::AwaitsCallout(Some(current)) if current == token)
    }

    pub fn on_callout_response(&mut self, size: CalloutSize, envoy: &impl Attributes) -> Effect<'_> {
        let (State::AwaitsCallout(_), Some(in_flight)) = (&self.state, &mut self.in_flight) else {
            return Effect::Continue;
        };
        let plan = &in_flight.probe.plan;
        let redirect = in_flight.redirect.take();
        let result = CalloutResult::read(redirect.is_none(), size, plan.timeout, envoy);
        let (response, requests) = match &redirect {
            None => (decision::on_grpc_response(plan, &result), 1),
            Some(redirect) => (
                decision::on_redirect_response(&in_flight.config, plan, redirect, &result),
                redirect.requests(),
            ),
        };
        self.respond(response, requests, envoy)
    }

    /// Ends the probe after a host call of the last effect has failed with `status`.
    pub fn on_failure(&mut self, status: u32) -> Effect<'_> {
        self.fail(match self.state {
            State::AwaitsCallout(_) => envoy_error::from_call_status(status),
            _ => Reason::Configuration,
        })
    }

    /// `requests` is the number of requests that the probe has sent so far.
    fn respond(&mut self, response: ProbeResponse, requests: u32, envoy: &impl Attributes) -> Effect<'_> {
        match (response, &self.in_flight) {
            (ProbeResponse::FollowRedirect(request), _) => self.follow_redirect(*request, requests, envoy),
            (ProbeResponse::ForwardStatus { status, reason }, Some(in_flight)) => {
                self.state = State::ForwardsBody(BodyFilter::default());
                Effect::ForwardStatus { status, probe: Rc::clone(&in_flight.probe), reason }
            }
            (response, _) => self.end(response),
        }
    }

    fn follow_redirect(&mut self, request: Request, requests: u32, envoy: &impl Attributes) -> Effect<'_> {
        let Some(elapsed) = envoy.elapsed() else { return self.fail(Reason::Configuration) };
        let timeout = self.in_flight.as_ref().map(|in_flight| in_flight.probe.plan.timeout);
        let Some(timeout) = timeout.and_then(|timeout| decision::remaining(timeout, elapsed)) else {
            return self.fail(Reason::Timeout);
        };
        let Some(InFlight { config, user_agent, redirect, .. }) = &mut self.in_flight else {
            return Effect::Continue;
        };
        self.state = State::AwaitsCallout(None);
        let redirect = redirect.insert(RedirectRequest::new(config, request, requests));
        Effect::Callout(decision::redirect_callout(config, redirect, user_agent, timeout))
    }

    fn fail(&mut self, reason: Reason) -> Effect<'static> {
        let response = match &self.in_flight {
            Some(in_flight) => ProbeResponse::of(&in_flight.probe.plan, reason),
            None => ProbeResponse::reply(reason),
        };
        self.end(response)
    }

    fn end(&mut self, response: ProbeResponse) -> Effect<'static> {
        self.state = State::Idle;
        match self.in_flight.take() {
            Some(in_flight) => ended(response, Rc::clone(&in_flight.probe)),
            None => Effect::Continue,
        }
    }
}

/// Returns the effect of a response that ends the probe.
fn ended(response: ProbeResponse, probe: Rc<DeclaredProbe>) -> Effect<'static> {
    match response {
        ProbeResponse::Reset(reason) => Effect::Reset { probe, reason },
        ProbeResponse::LocalReply { status, reason } | ProbeResponse::ForwardStatus { status, reason } => {
            Effect::LocalReply { status, probe: Some(probe), reason }
        }
        ProbeResponse::FollowRedirect(_) => {
            let reason = Reason::Configuration;
            Effect::LocalReply { status: reason.status(), probe: Some(probe), reason }
        }
    }
}

#[cfg(test)]
mod tests;
