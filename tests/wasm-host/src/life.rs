//! The life of a request as data: its head, then what happens to it, in the order in which Envoy would call. What the
//! host would not do is left out: no answer for a request that was answered in place, no chunk after a reset.

use std::fmt;
use std::time::Duration;

use super::{Action, CalloutAnswer, Vm, VmError};
use crate::transcript::{Headers, headers};

/// A request, and what happens to it.
#[derive(Clone, Debug)]
pub struct Life {
    /// The request head.
    pub head: Headers,
    /// Whether the request ends with its head.
    pub end_of_stream: bool,
    /// What happens then.
    pub steps: Vec<Step>,
}

/// One thing that happens to a request.
#[derive(Clone, Debug)]
pub enum Step {
    /// The head of an answer by the route, with Envoy's `response.code_details` and, where there is one,
    /// `upstream.transport_failure_reason`.
    Answer { headers: Headers, details: String, failure: String },
    /// A chunk of its body.
    Chunk { bytes: Vec<u8>, last: bool },
    /// The answer to a callout; None for one without an answer.
    Callout(Option<CalloutAnswer>),
    /// Time passes.
    Wait(Duration),
}

/// What the caller got in the end.
/// Its Debug shows bytes as escaped text.
#[derive(Clone, PartialEq, Eq)]
pub enum End {
    /// Nothing, and the request went on to the routes as it had come.
    Passed,
    /// Nothing: it still waits.
    Waiting,
    /// A connection that broke.
    Reset,
    /// The filter's own answer.
    Reply { status: u32, headers: Headers, body: String },
    /// What the filter let through.
    Streamed { headers: Headers, body: Vec<u8> },
}

impl fmt::Debug for End {
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

impl Life {
    /// kubelet's GET for a path.
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

    /// The same with another value of a header, or one header more.
    pub fn with(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.head.retain(|(other, _)| other != name.as_bytes());
        self.head.push((name.into(), value.as_ref().into()));
        self
    }

    /// The same without a header.
    pub fn without(mut self, name: &str) -> Self {
        self.head.retain(|(other, _)| other != name.as_bytes());
        self
    }

    /// Then the application answers by the route.
    pub fn application<V: AsRef<[u8]>>(
        self,
        status: u16,
        more: impl IntoIterator<Item = (&'static str, V)>,
    ) -> Self {
        let mut head = headers([(":status", status.to_string())]);
        head.extend(headers(more));
        self.then(Step::Answer { headers: head, details: "via_upstream".into(), failure: String::new() })
    }

    /// Then Envoy answers in its place.
    pub fn envoy(self, status: u16, details: &str, failure: &str) -> Self {
        let headers = headers([(":status", status.to_string()), ("content-type", "text/plain".into())]);
        self.then(Step::Answer { headers, details: details.into(), failure: failure.into() })
    }

    /// Then comes a chunk of the answer's body.
    pub fn chunk(self, bytes: impl Into<Vec<u8>>, last: bool) -> Self {
        self.then(Step::Chunk { bytes: bytes.into(), last })
    }

    /// Then a callout is answered.
    pub fn callout(self, answer: CalloutAnswer) -> Self {
        self.then(Step::Callout(Some(answer)))
    }

    /// Then a callout ends without an answer.
    pub fn callout_failed(self) -> Self {
        self.then(Step::Callout(None))
    }

    /// Then time passes.
    pub fn wait(self, time: Duration) -> Self {
        self.then(Step::Wait(time))
    }

    /// Then that.
    pub fn then(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Lives it to its end, the deletion of the stream included.
    ///
    /// # Errors
    /// `Trap`, `Dead`.
    pub fn live(&self, vm: &mut Vm) -> Result<End, VmError> {
        let before = vm.host().newest_callout();
        let (context, action) = vm.request(self.head.clone(), self.end_of_stream)?;
        // A request that goes on as it came finds no route to an application.
        let routed = action == Action::Continue
            && vm.stream(context).is_some_and(|stream| stream.request_headers != self.head);
        for step in &self.steps {
            step.happen(vm, context, routed, before)?;
        }
        let end = self.end(vm, context, action);
        vm.finish(context)?;
        // Envoy goes on with a callout whose caller has left, until it fails.
        let left = vm.host().newest_callout();
        if left > before {
            vm.callout_failed(left)?;
        }
        Ok(end)
    }

    fn end(&self, vm: &Vm, context: u32, action: Action) -> End {
        let Some(stream) = vm.stream(context) else { return End::Waiting };
        match &stream.local_reply {
            _ if stream.reset => End::Reset,
            Some(reply) => End::Reply {
                status: reply.status,
                headers: reply.headers.clone(),
                body: String::from_utf8_lossy(&reply.body).into_owned(),
            },
            None if stream.response_started => {
                End::Streamed { headers: stream.response_headers.clone(), body: stream.sent_body.clone() }
            }
            None if action == Action::Continue && stream.request_headers == self.head => End::Passed,
            None => End::Waiting,
        }
    }
}

impl Step {
    /// `routed`: the filter sent the request on; `before`: the newest callout before it.
    fn happen(&self, vm: &mut Vm, context: u32, routed: bool, before: u32) -> Result<(), VmError> {
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
