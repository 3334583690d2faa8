//! Handles the callbacks of the proxy-wasm ABI: keeps the state of each stream, reads what
//! [`decision`] needs from Envoy, and carries out its result. A host call that fails ends the probe
//! as `configuration`; a failed HTTP callout ends it as [`envoy_error::from_call_status`] says.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use probe::{Reason, Request};

use crate::abi::{self, Action, BufferType, CallSize, HeaderMap, LogLevel, Status};
use crate::config::{Config, Probe};
use crate::decision::{
    self, BodyFilter, Callout, ChunkEdit, Decision, NeededAttributes, ProbeMatch, ProbeResponse,
    RedirectRequest, RequestHead,
};
use crate::encoding;
use crate::envoy_error;
use crate::stats;

mod callout_response;
mod metrics;

use callout_response::{Read, elapsed, location};
use metrics::Metrics;

const SET_FILTER_STATE: &str = "set_envoy_filter_state";
const CODE_DETAILS: &str = "response\0code_details";
const TRANSPORT_FAILURE: &str = "upstream\0transport_failure_reason";

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// The state of one wasm VM, which is one Envoy worker.
#[derive(Default)]
struct State {
    roots: BTreeMap<u32, Option<Rc<Config>>>,
    streams: BTreeMap<u32, Stream>,
    /// Callouts whose downstream stream has ended. Envoy does not cancel them, so they still count
    /// as probes in flight.
    left: Vec<Left>,
    metrics: Metrics,
}

struct Stream {
    root: u32,
    awaited: Awaited,
}

/// A callout whose downstream stream has ended. It counts as in flight until Envoy reports its end,
/// or until the probe's timeout has passed again after the end of the stream; `until` is that time
/// in nanoseconds since 1970.
struct Left {
    token: u32,
    _place: InFlight,
    until: u64,
}

/// The event that a stream waits for.
enum Awaited {
    /// The stream waits for its request headers, or for nothing any more.
    Nothing,
    /// The stream waits for the response headers of a route.
    Response(InFlight),
    /// The stream waits for the rest of a response body; the probe is in flight until the body
    /// ends.
    BodyFilter { _place: InFlight, body: BodyFilter },
    /// The stream waits for the response to a callout; `redirect_callout` is `None` for a gRPC check.
    Callout { place: InFlight, token: u32, redirect_callout: Option<RedirectRequest> },
}

/// A probe in flight and its configuration. Dropping it frees its slot in [`stats::ProberStats`].
struct InFlight {
    config: Rc<Config>,
    probe: Rc<Probe>,
    user_agent: Vec<u8>,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.probe.stats.release();
    }
}

pub(crate) fn on_create(context: u32, parent: u32) {
    with((), |state| {
        if parent == 0 {
            state.roots.insert(context, None);
        } else {
            state.streams.insert(context, Stream { root: parent, awaited: Awaited::Nothing });
        }
    });
}

pub(crate) fn on_delete(context: u32) {
    with((), |state| {
        if let Some(Stream { awaited: Awaited::Callout { place, token, .. }, .. }) =
            state.streams.remove(&context)
        {
            let timeout = u64::try_from(place.probe.plan.timeout.as_nanos()).unwrap_or(u64::MAX);
            let until = abi::now().unwrap_or(0).saturating_add(timeout);
            state.left.push(Left { token, _place: place, until });
        }
        state.roots.remove(&context);
    });
}

pub(crate) fn on_configure(root: u32, size: usize) -> bool {
    with(false, |state| state.configure(root, size))
}

pub(crate) fn on_request_headers(context: u32, end_of_stream: bool) -> Action {
    with(Action::Continue, |state| state.request(context, end_of_stream))
}

pub(crate) fn on_response_headers(context: u32) -> Action {
    with(Action::Continue, |state| match state.take(context) {
        Awaited::Response(place) => state.response(context, place),
        awaited => {
            state.await_next(context, awaited);
            Action::Continue
        }
    })
}

pub(crate) fn on_response_body(context: u32, size: usize, end_of_stream: bool) -> Action {
    with(Action::Continue, |state| state.body(context, size, end_of_stream))
}

pub(crate) fn on_call_response(context: u32, token: u32, size: CallSize) {
    with((), |state| state.call_response(context, token, size));
}

/// Calls `act` with the state, and returns `otherwise` if the state is borrowed already or
/// destroyed.
fn with<T: Copy>(otherwise: T, act: impl FnOnce(&mut State) -> T) -> T {
    let done = STATE.try_with(|state| state.try_borrow_mut().ok().map(|mut state| act(&mut state)));
    done.ok().flatten().unwrap_or(otherwise)
}

impl State {
    fn configure(&mut self, root: u32, size: usize) -> bool {
        let bytes =
            if size == 0 { Ok(Vec::new()) } else { abi::buffer(BufferType::PluginConfiguration, size) };
        let config = match bytes {
            Ok(bytes) if bytes.len() == size => Config::parse(&bytes).map_err(|error| error.to_string()),
            Ok(_) => Err("configuration: Envoy returned fewer bytes than announced".into()),
            Err(Status(status)) => Err(format!("configuration: read failed with status {status}")),
        };
        match config {
            Ok(config) => {
                for warning in &config.warnings {
                    abi::log(LogLevel::Warn, warning);
                }
                for probe in config.probes() {
                    self.metrics.define_initial(probe);
                }
                self.roots.insert(root, Some(Rc::new(config)));
                true
            }
            Err(text) => {
                abi::log(LogLevel::Error, &format!("plugin configuration rejected: {text}"));
                self.metrics.increment(stats::CONFIG_REJECTED_TOTAL);
                false
            }
        }
    }

    fn request(&mut self, context: u32, end_of_stream: bool) -> Action {
        let root = self.streams.get(&context).map(|stream| stream.root);
        let Some(Some(config)) = root.and_then(|root| self.roots.get(&root)).cloned() else {
            return Action::Continue;
        };
        let Ok(Some(path)) = abi::header(HeaderMap::Request, ":path") else { return Action::Continue };
        match decision::find_probe(&config, &path) {
            ProbeMatch::None => Action::Continue,
            ProbeMatch::Undeclared => {
                self.metrics.increment(stats::UNKNOWN_TOTAL);
                reply(Reason::UnknownProbe.status(), Reason::UnknownProbe)
            }
            ProbeMatch::Declared(probe) => self.probe(context, &config, Rc::clone(probe), end_of_stream),
        }
    }

    fn probe(&mut self, context: u32, config: &Rc<Config>, probe: Rc<Probe>, end_of_stream: bool) -> Action {
        let plan = &probe.plan;
        let method = abi::header(HeaderMap::Request, ":method").ok().flatten();
        let user_agent = match plan.wants_user_agent() {
            true => abi::header(HeaderMap::Request, "user-agent").ok().flatten(),
            false => None,
        };
        if !self.left.is_empty() {
            let now = abi::now().unwrap_or(u64::MAX);
            self.left.retain(|left| now <= left.until);
        }
        let place = probe.stats.acquire().then(|| InFlight {
            config: Rc::clone(config),
            probe: Rc::clone(&probe),
            user_agent: crate::prober_plan::user_agent(user_agent.as_deref(), plan.path.kind()).to_vec(),
        });
        let head = RequestHead {
            method: method.as_deref(),
            user_agent: user_agent.as_deref(),
            has_body: !end_of_stream,
            has_slot: place.is_some(),
        };
        let done = match (decision::on_request(config, plan, head), place) {
            (Decision::Respond(answer), _) => return self.answer(&probe, &answer),
            (Decision::Forward { state, head }, Some(place)) => {
                let done = forward(state, &head).map_err(|_| Reason::Configuration);
                done.map(|()| (Awaited::Response(place), Action::Continue))
            }
            (Decision::Callout(call), Some(place)) => start(&call)
                .map(|token| (Awaited::Callout { place, token, redirect_callout: None }, Action::Pause)),
            (_, None) => Err(Reason::Configuration),
        };
        match done {
            Ok((awaited, action)) => {
                self.await_next(context, awaited);
                action
            }
            Err(reason) => self.answer(&probe, &ProbeResponse::of(plan, reason)),
        }
    }

    fn response(&mut self, context: u32, place: InFlight) -> Action {
        let plan = &place.probe.plan;
        let status =
            decision::parse_status(abi::header(HeaderMap::Response, ":status").ok().flatten().as_deref());
        let property = |path| abi::property(path).ok().flatten().unwrap_or_default();
        let (location, details, failure) = match decision::needed_attributes(plan, status) {
            NeededAttributes::None => (None, Vec::new(), Vec::new()),
            NeededAttributes::Location => (location(HeaderMap::Response), Vec::new(), Vec::new()),
            NeededAttributes::ErrorDetails => (None, property(CODE_DETAILS), property(TRANSPORT_FAILURE)),
        };
        let head = decision::ResponseHead {
            status,
            location: location.as_deref(),
            details: &details,
            failure: &failure,
        };
        match decision::on_response(&place.config, plan, head) {
            ProbeResponse::FollowRedirect(request) => self.follow(context, place, *request, 1),
            ProbeResponse::ForwardStatus { status, reason } => {
                let status = status.to_string();
                if abi::set_headers(HeaderMap::Response, &encoding::pairs(&[(b":status", status.as_bytes())]))
                    .is_err()
                {
                    return self.answer(&place.probe, &ProbeResponse::of(plan, Reason::Configuration));
                }
                self.metrics.record(&place.probe, reason);
                self.await_next(context, Awaited::BodyFilter { _place: place, body: BodyFilter::default() });
                Action::Continue
            }
            answer => self.answer(&place.probe, &answer),
        }
    }

    /// Sends the request of a redirect as a callout. `requests` is the number of requests that the
    /// probe has sent so far.
    fn follow(&mut self, context: u32, place: InFlight, request: Request, requests: u32) -> Action {
        let plan = &place.probe.plan;
        let redirect_callout = RedirectRequest::new(&place.config, request, requests);
        let failed = match elapsed() {
            None => Reason::Configuration,
            Some(elapsed) => {
                match decision::redirect_callout(
                    &place.config,
                    &redirect_callout,
                    &place.user_agent,
                    plan.timeout,
                    elapsed,
                ) {
                    None => Reason::Timeout,
                    Some(call) => match start(&call) {
                        Err(reason) => reason,
                        Ok(token) => {
                            self.await_next(
                                context,
                                Awaited::Callout { place, token, redirect_callout: Some(redirect_callout) },
                            );
                            return Action::Pause;
                        }
                    },
                }
            }
        };
        self.answer(&place.probe, &ProbeResponse::of(plan, failed))
    }

    fn body(&mut self, context: u32, size: usize, end_of_stream: bool) -> Action {
        let Some(Stream { awaited: Awaited::BodyFilter { body, .. }, .. }) = self.streams.get_mut(&context)
        else {
            return Action::Continue;
        };
        let put = match body.on_chunk(size, end_of_stream) {
            ChunkEdit::Keep => Ok(()),
            ChunkEdit::Clear => abi::set_buffer(BufferType::ResponseBody, size, b""),
            ChunkEdit::Spaces => {
                abi::set_buffer(BufferType::ResponseBody, size, &vec![b' '; decision::SPACES])
            }
        };
        // If the body cannot be emptied, reset the stream: the application's body must not leave
        // the Pod.
        if put.is_err() {
            let _ = abi::reset_request();
            return Action::Pause;
        }
        Action::Continue
    }

    fn call_response(&mut self, context: u32, token: u32, size: CallSize) {
        self.left.retain(|left| left.token != token);
        let ours = |stream: &Stream| matches!(stream.awaited, Awaited::Callout { token: other, .. } if other == token);
        let asked = self.streams.get(&context).is_some_and(ours);
        let found =
            if asked { Some(context) } else { self.streams.iter().find(|(_, s)| ours(s)).map(|(id, _)| *id) };
        let Some(stream) = found else { return };
        let Awaited::Callout { place, redirect_callout, .. } = self.take(stream) else { return };
        // Host calls act on the context of this callback. If it is another one, switch; if that
        // fails, the next host call fails too.
        if stream != context {
            let _ = abi::set_effective_context(stream);
        }
        let read = Read::of(redirect_callout.is_none(), size, place.probe.plan.timeout);
        let answer = match &redirect_callout {
            None => decision::on_grpc_response(&place.probe.plan, read.result()),
            Some(redirect_callout) => decision::on_redirect_response(
                &place.config,
                &place.probe.plan,
                redirect_callout,
                read.result(),
            ),
        };
        match (answer, redirect_callout) {
            (ProbeResponse::FollowRedirect(request), Some(redirect_callout)) => {
                self.follow(stream, place, *request, redirect_callout.requests());
            }
            (answer, _) => {
                self.answer(&place.probe, &answer);
            }
        }
    }

    /// Sends a complete response to kubelet, or resets the stream.
    fn answer(&mut self, probe: &Probe, answer: &ProbeResponse) -> Action {
        match answer {
            ProbeResponse::LocalReply { status, reason }
            | ProbeResponse::ForwardStatus { status, reason } => {
                self.metrics.record(probe, *reason);
                reply(*status, *reason)
            }
            ProbeResponse::Reset(reason) => {
                self.metrics.record(probe, *reason);
                let _ = abi::reset_request();
                Action::Pause
            }
            ProbeResponse::FollowRedirect(_) => reply(Reason::Configuration.status(), Reason::Configuration),
        }
    }

    fn take(&mut self, context: u32) -> Awaited {
        let stream = self.streams.get_mut(&context);
        stream.map_or(Awaited::Nothing, |stream| std::mem::replace(&mut stream.awaited, Awaited::Nothing))
    }

    fn await_next(&mut self, context: u32, awaited: Awaited) {
        if let Some(stream) = self.streams.get_mut(&context) {
            stream.awaited = awaited;
        }
    }
}

/// Sets the destination before the headers: without the filter state, the `ORIGINAL_DST` cluster
/// would connect to the address that the downstream connection was made to.
fn forward(state: &[u8], head: &crate::prober_plan::HeaderPairs) -> abi::Result<()> {
    abi::foreign_function(SET_FILTER_STATE, state)?;
    abi::set_headers(HeaderMap::Request, &encoding::pairs(head))
}

fn start(call: &Callout) -> Result<u32, Reason> {
    let timeout_ms = u32::try_from(call.timeout.as_millis()).unwrap_or(u32::MAX);
    abi::http_call(call.cluster, &encoding::pairs(&call.head), call.body, timeout_ms)
        .map_err(|Status(status)| envoy_error::from_call_status(status))
}

fn reply(status: u16, reason: Reason) -> Action {
    if abi::send_local_response(status, reason.word(), &reason.body()).is_err() {
        let _ = abi::reset_request();
    }
    Action::Pause
}
