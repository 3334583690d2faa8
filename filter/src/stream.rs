//! The state machine of one HTTP stream. Each event of Envoy is a method that returns the
//! [`Decision`] to carry out; the caller reports one that failed with [`Stream::fail`].

use std::rc::Rc;

use probe::Reason;

use crate::attributes::{Attribute, Attributes};
use crate::config::{Config, DeclaredProbe};
use crate::decision::{self, BodyFilter, CalloutSize, ChunkEdit, Decision, ProbeMatch, ProbeRequest};
use crate::permits::Permit;

mod orphans;

pub use orphans::Orphans;

/// One HTTP stream.
#[derive(Debug, Default)]
pub struct Stream {
    state: State,
    /// The permit of the probe in flight.
    permit: Option<Permit>,
    /// The request for a declared probe. It remains when the probe ends, because the result is recorded
    /// after that.
    request: Option<ProbeRequest>,
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

impl Stream {
    /// Returns the probe of the request; `None` if its path is not declared.
    pub fn probe(&self) -> Option<&DeclaredProbe> {
        self.request.as_ref().map(ProbeRequest::probe)
    }

    /// `has_body` is true if the request does not end with its headers.
    pub fn on_request_headers(
        &mut self,
        config: &Rc<Config>,
        envoy: &impl Attributes,
        has_body: bool,
    ) -> Decision<'_> {
        let Some(path) = envoy.value(Attribute::RequestHeader(":path")) else { return Decision::Continue };
        let probe = match decision::find_probe(config, &path) {
            ProbeMatch::None => return Decision::Continue,
            ProbeMatch::Undeclared => return decision::on_undeclared(envoy),
            ProbeMatch::Declared(probe) => probe,
        };
        let request = self.request.insert(ProbeRequest::new(config, probe));
        let decision = match request.admit(envoy, has_body) {
            Ok(permit) => {
                self.permit = Some(permit);
                request.first_request(envoy)
            }
            Err(decision) => decision,
        };
        advance(&mut self.state, &mut self.permit, decision)
    }

    pub fn on_response_headers(&mut self, envoy: &impl Attributes) -> Decision<'_> {
        let decision = match (&self.state, &mut self.request) {
            (State::AwaitsResponse, Some(request)) => request.on_response(envoy),
            _ => Decision::Continue,
        };
        advance(&mut self.state, &mut self.permit, decision)
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

    pub fn on_callout_response(&mut self, size: CalloutSize, envoy: &impl Attributes) -> Decision<'_> {
        let decision = match (&self.state, &mut self.request) {
            (State::AwaitsCallout(_), Some(request)) => request.on_callout_response(size, envoy),
            _ => Decision::Continue,
        };
        advance(&mut self.state, &mut self.permit, decision)
    }

    /// Ends the probe because the host could not carry out a decision.
    pub fn fail(&mut self, reason: Reason) -> Decision<'_> {
        let decision = match (&self.state, &self.request) {
            (State::Idle, _) | (_, None) => Decision::Continue,
            (_, Some(request)) => request.end(reason),
        };
        advance(&mut self.state, &mut self.permit, decision)
    }
}

/// Changes the state as the decision requires, and returns the decision, which borrows from the rest of
/// the stream.
fn advance<'a>(state: &mut State, permit: &mut Option<Permit>, decision: Decision<'a>) -> Decision<'a> {
    *state = match decision {
        Decision::Continue => return decision,
        Decision::Forward { .. } => State::AwaitsResponse,
        Decision::Callout(_) => State::AwaitsCallout(None),
        Decision::ForwardStatus { .. } => State::ForwardsBody(BodyFilter::default()),
        Decision::LocalReply { .. } | Decision::RefuseHook { .. } | Decision::Reset(_) => {
            *permit = None;
            State::Idle
        }
    };
    decision
}

#[cfg(test)]
mod tests;
