//! The state machine of one HTTP stream. Each event of Envoy is a method that returns the
//! [`Effect`] to carry out; the caller reports a failed effect with [`Stream::fail`].

use std::rc::Rc;
use std::time::Duration;

use probe::{Reason, Request};

use crate::attributes::{Attribute, Attributes};
use crate::config::{self, Config, DeclaredProbe};
use crate::decision::{
    self, BodyFilter, Callout, CalloutResult, CalloutSize, ChunkEdit, FirstRequest, ProbeMatch,
    ProbeResponse, RedirectRequest,
};
use crate::permits::Permit;
use crate::prober_plan::{self, HeaderPairs};

mod orphans;

pub use orphans::Orphans;

/// What the host does after an event.
#[derive(Debug)]
pub enum Effect<'a> {
    /// Envoy continues with the stream as it is.
    Continue,
    /// A route forwards the request.
    Forward {
        /// `address:port`, to which the route's cluster connects.
        destination: &'a str,
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
    /// The host records that this client, `address:port`, may not call the hook, resets the stream and
    /// pauses.
    RefuseHook { client: Vec<u8>, probe: Rc<DeclaredProbe> },
    /// The host records the result, resets the stream and pauses. `probe` is `None` if the path is not
    /// declared.
    Reset { probe: Option<Rc<DeclaredProbe>>, reason: Reason },
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
    AwaitsCallout(Option<u64>),
}

/// A probe in flight. Dropping it frees its permit.
#[derive(Debug)]
struct InFlight {
    config: Rc<Config>,
    probe: Rc<DeclaredProbe>,
    _permit: Permit,
    user_agent: Vec<u8>,
    /// The request of the current callout; `None` for a gRPC check.
    redirect: Option<RedirectRequest>,
    /// True after the gRPC check was sent again.
    is_repeated: bool,
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
            ProbeMatch::Undeclared => None,
            ProbeMatch::Declared(probe) => Some(Rc::clone(probe)),
        };
        if decision::is_grpc(envoy.value(Attribute::RequestHeader("content-type")).as_deref()) {
            return Effect::Reset { probe, reason: Reason::BadRequest };
        }
        let Some(probe) = probe else {
            let reason = Reason::UnknownProbe;
            return Effect::LocalReply { status: reason.status(), probe: None, reason };
        };
        let method = envoy.value(Attribute::RequestHeader(":method"));
        if let Some(reason) = decision::reject(method.as_deref(), has_body) {
            return Effect::LocalReply { status: reason.status(), probe: Some(probe), reason };
        }
        let plan = &probe.plan;
        let client = || envoy.value(Attribute::SourceAddress).unwrap_or_default();
        if plan.is_hook() {
            let client = client();
            if !config.may_call_hooks(&client) {
                return Effect::RefuseHook { client, probe };
            }
        }
        let Some(permit) = probe.permits.take(|| config::without_port(&client()).to_vec()) else {
            return ended(ProbeResponse::of(plan, Reason::Busy), Rc::clone(&probe));
        };
        let kubelet = match plan.wants_user_agent() {
            true => envoy.value(Attribute::RequestHeader("user-agent")),
            false => None,
        };
        let user_agent = prober_plan::user_agent(kubelet.as_deref(), plan.path.kind()).to_vec();
        let in_flight = InFlight {
            config: Rc::clone(config),
            probe,
            _permit: permit,
            user_agent,
            redirect: None,
            is_repeated: false,
        };
        let in_flight = self.in_flight.insert(in_flight);
        let InFlight { config, probe, user_agent, .. } = in_flight;
        match decision::first_request(config, &probe.plan, user_agent) {
            FirstRequest::Forward { destination, headers } => {
                self.state = State::AwaitsResponse;
                Effect::Forward { destination, headers }
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

    pub fn callout_started(&mut self, token: u64) {
        if let State::AwaitsCallout(current) = &mut self.state {
            *current = Some(token);
        }
    }

    /// Returns true if the stream awaits the response to the callout with this token.
    pub fn awaits(&self, token: u64) -> bool {
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
        if redirect.is_none() && !in_flight.is_repeated && decision::may_be_stale(plan, &response) {
            in_flight.is_repeated = true;
            return self.repeat_grpc_check(envoy);
        }
        self.respond(response, requests, envoy)
    }

    fn repeat_grpc_check(&mut self, envoy: &impl Attributes) -> Effect<'_> {
        let timeout = match self.remaining(envoy) {
            Ok(timeout) => timeout,
            Err(reason) => return self.fail(reason),
        };
        let Some(InFlight { config, probe, user_agent, .. }) = &self.in_flight else {
            return Effect::Continue;
        };
        match decision::repeated_grpc_check(config, &probe.plan, user_agent, timeout) {
            Some(callout) => {
                self.state = State::AwaitsCallout(None);
                Effect::Callout(callout)
            }
            None => Effect::Continue,
        }
    }

    /// Returns the rest of the probe's timeout, or the reason with which the probe ends without it.
    fn remaining(&self, envoy: &impl Attributes) -> Result<Duration, Reason> {
        let timeout =
            self.in_flight.as_ref().map_or(Duration::ZERO, |in_flight| in_flight.probe.plan.timeout);
        let elapsed = envoy.elapsed().ok_or(Reason::Configuration)?;
        decision::remaining(timeout, elapsed).ok_or(Reason::Timeout)
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
        let timeout = match self.remaining(envoy) {
            Ok(timeout) => timeout,
            Err(reason) => return self.fail(reason),
        };
        let Some(InFlight { config, user_agent, redirect, .. }) = &mut self.in_flight else {
            return Effect::Continue;
        };
        self.state = State::AwaitsCallout(None);
        let redirect = redirect.insert(RedirectRequest::new(config, request, requests));
        Effect::Callout(decision::redirect_callout(config, redirect, user_agent, timeout))
    }

    /// Ends the probe for a reason of its own, or because the host could not carry out an effect.
    pub fn fail(&mut self, reason: Reason) -> Effect<'static> {
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
        ProbeResponse::Reset(reason) => Effect::Reset { probe: Some(probe), reason },
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
