//! A scenario of a request as data: its headers, then the events in the order in which Envoy would
//! deliver them. Events that Envoy would not deliver are skipped, for example a response to a
//! request that got a local reply, or a chunk after a reset.

use std::fmt;
use std::time::Duration;

use super::{Action, CalloutAnswer, Vm, VmError};
use crate::transcript::{Headers, headers};

/// A request, and the events that follow.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub head: Headers,
    /// Whether the request ends with its headers.
    pub end_of_stream: bool,
    pub steps: Vec<Step>,
}

/// An event of a request.
#[derive(Clone, Debug)]
pub enum Step {
    /// The headers of a response by the route, with Envoy's `response.code_details` and, if
    /// present, `upstream.transport_failure_reason`.
    Answer { headers: Headers, details: String, failure: String },
    /// A chunk of the response body.
    Chunk { bytes: Vec<u8>, last: bool },
    /// The response to a callout; `None` if it fails.
    Callout(Option<CalloutAnswer>),
    /// Advances the time of the host.
    Wait(Duration),
}

/// The final result for the client. Its `Debug` output shows bytes as escaped text.
#[derive(Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The filter passed the request on to the routes unmodified.
    Passed,
    /// The request is still waiting.
    Waiting,
    /// The stream was reset.
    Reset,
    /// A local reply of the filter.
    Reply { status: u32, headers: Headers, body: String },
    /// A response that the filter passed on.
    Streamed { headers: Headers, body: Vec<u8> },
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let map = |headers: &Headers| {
            let line = |(name, value): &(Vec<u8>, Vec<u8>)| {
                format!("{}: {}", name.escape_ascii(), value.escape_ascii())
            };
            headers.iter().map(line).collect::<Vec<_>>()
        };
        match self {
            Self::Passed => f.write_str("Passed"),
            Self::Waiting => f.write_str("Waiting"),
            Self::Reset => f.write_str("Reset"),
            Self::Reply { status, headers, body } => {
                write!(f, "Reply({status}, {:?}, {body:?})", map(headers))
            }
            Self::Streamed { headers, body } => {
                write!(f, "Streamed({:?}, \"{}\")", map(headers), body.escape_ascii())
            }
        }
    }
}

impl Scenario {
    /// Returns kubelet's GET request for a path.
    pub fn get(path: impl AsRef<[u8]>) -> Self {
        let head = [
            (":method", &b"GET"[..]),
            (":path", path.as_ref()),
            (":authority", b"10.0.0.5:15020"),
            (":scheme", b"http"),
            ("user-agent", b"kube-probe/1.36"),
            ("accept", b"*/*"),
        ];
        Self { head: headers(head), end_of_stream: true, steps: Vec::new() }
    }

    /// Replaces or adds a header.
    pub fn with(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.head.retain(|(other, _)| other != name.as_bytes());
        self.head.push((name.into(), value.as_ref().into()));
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.head.retain(|(other, _)| other != name.as_bytes());
        self
    }

    /// Appends a response of the application by the route.
    pub fn application<V: AsRef<[u8]>>(
        self,
        status: u16,
        more: impl IntoIterator<Item = (&'static str, V)>,
    ) -> Self {
        let mut head = headers([(":status", status.to_string())]);
        head.extend(headers(more));
        self.push(Step::Answer { headers: head, details: "via_upstream".into(), failure: String::new() })
    }

    /// Appends a local response of Envoy.
    pub fn envoy(self, status: u16, details: &str, failure: &str) -> Self {
        let headers = headers([(":status", status.to_string()), ("content-type", "text/plain".into())]);
        self.push(Step::Answer { headers, details: details.into(), failure: failure.into() })
    }

    /// Appends a chunk of the response body.
    pub fn chunk(self, bytes: impl Into<Vec<u8>>, last: bool) -> Self {
        self.push(Step::Chunk { bytes: bytes.into(), last })
    }

    /// Appends a response to a callout.
    pub fn callout(self, answer: CalloutAnswer) -> Self {
        self.push(Step::Callout(Some(answer)))
    }

    /// Appends a callout that fails.
    pub fn callout_failed(self) -> Self {
        self.push(Step::Callout(None))
    }

    pub fn wait(self, time: Duration) -> Self {
        self.push(Step::Wait(time))
    }

    pub fn push(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Runs the scenario to its end, including the deletion of the stream.
    ///
    /// # Errors
    /// `Trap`, `Dead`.
    pub fn run(&self, vm: &mut Vm) -> Result<Outcome, VmError> {
        let before = vm.host().newest_callout();
        let (context, action) = vm.request(self.head.clone(), self.end_of_stream)?;
        // A request that continues unmodified has no route to an application.
        let routed = action == Action::Continue
            && vm.stream(context).is_some_and(|stream| stream.request_headers != self.head);
        for step in &self.steps {
            step.deliver(vm, context, routed, before)?;
        }
        let end = self.end(vm, context, action);
        vm.finish(context)?;
        // Envoy continues a callout after its client has disconnected, until the callout fails.
        let left = vm.host().newest_callout();
        if left > before {
            vm.callout_failed(left)?;
        }
        Ok(end)
    }

    fn end(&self, vm: &Vm, context: u32, action: Action) -> Outcome {
        let Some(stream) = vm.stream(context) else { return Outcome::Waiting };
        match &stream.local_reply {
            _ if stream.reset => Outcome::Reset,
            Some(reply) => Outcome::Reply {
                status: reply.status,
                headers: reply.headers.clone(),
                body: String::from_utf8_lossy(&reply.body).into_owned(),
            },
            None if stream.response_started => {
                Outcome::Streamed { headers: stream.response_headers.clone(), body: stream.sent_body.clone() }
            }
            None if action == Action::Continue && stream.request_headers == self.head => Outcome::Passed,
            None => Outcome::Waiting,
        }
    }
}

impl Step {
    /// `routed`: the filter sent the request on; `before`: the token of the newest callout before
    /// the request.
    fn deliver(&self, vm: &mut Vm, context: u32, routed: bool, before: u32) -> Result<(), VmError> {
        let Some(stream) = vm.stream(context).filter(|stream| !stream.ended()) else { return Ok(()) };
        match self {
            Self::Answer { headers, details, failure } if routed && !stream.response_seen => {
                vm.set_property(context, &["response", "code_details"], details.as_bytes())?;
                if !failure.is_empty() {
                    let path = ["upstream", "transport_failure_reason"];
                    vm.set_property(context, &path, failure.as_bytes())?;
                }
                vm.response(context, headers.clone(), false)?;
            }
            Self::Chunk { bytes, last } if stream.response_started => {
                vm.response_body(context, bytes, *last)?;
            }
            Self::Callout(answer) => {
                let token = vm.host().newest_callout();
                match answer {
                    _ if token <= before => {}
                    Some(answer) => vm.callout_answer(token, answer.clone())?,
                    None => vm.callout_failed(token)?,
                }
            }
            Self::Wait(time) => vm.host_mut().now += *time,
            Self::Answer { .. } | Self::Chunk { .. } => {}
        }
        Ok(())
    }
}
