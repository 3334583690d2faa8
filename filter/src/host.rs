//! What the two forms of the filter do for the state machine, and the one place that asks for it.

use probe::Reason;

use crate::attributes::Attributes;
use crate::config::DeclaredProbe;
use crate::decision::{Callout, ChunkEdit, SPACES};
use crate::metrics::{Metric, MetricsHost, Recorder};
use crate::stream::{Effect, Stream};

/// Envoy, as the current stream sees it. A failed call returns the reason with which the probe ends.
pub trait Host: Attributes + MetricsHost {
    /// Sets the address to which the `ORIGINAL_DST` cluster connects, and replaces all request
    /// headers. Without the address, the cluster would connect to the one that the downstream
    /// connection was made to, so a failure to set it leaves the headers as they are.
    fn forward(&mut self, destination: &str, headers: &[(&[u8], &[u8])]) -> Result<(), Reason>;

    /// Starts a callout and returns its token, which is unique among the callouts of a worker or of a
    /// stream.
    fn start_callout(&mut self, callout: &Callout<'_>) -> Result<u64, Reason>;

    /// Replaces all response headers by a status.
    fn replace_response(&mut self, status: u16) -> Result<(), Reason>;

    /// Replaces the current chunk of the response body, `size` bytes, by this many spaces.
    fn replace_chunk(&mut self, size: usize, spaces: usize) -> Result<(), Reason>;

    /// Answers the request with a status, the reason's text as body and its word as code details.
    fn send_local_reply(&mut self, status: u16, reason: Reason) -> Result<(), Reason>;

    /// Resets the downstream stream. A failure cannot be handled: the stream is gone already.
    fn reset(&mut self);

    fn log(&mut self, level: LogLevel, text: &str);

    /// Returns the time in nanoseconds of a clock that the host chooses.
    fn now(&self) -> u64;
}

/// The level of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    Info,
    Warn,
    Error,
}

/// What a callback returns to Envoy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Continue,
    Pause,
}

/// Passes an event to the stream and carries out the effect. If that fails, carries out the effect of
/// the failure.
pub fn run<H: Host>(
    stream: &mut Stream,
    host: &mut H,
    recorder: &mut Recorder,
    event: impl for<'a> FnOnce(&'a mut Stream, &H) -> Effect<'a>,
) -> Action {
    let effect = event(stream, host);
    match execute(effect, host, recorder) {
        Ok(Done::Action(action)) => action,
        Ok(Done::Called(token)) => {
            stream.callout_started(token);
            Action::Pause
        }
        Err(reason) => {
            // A local reply that cannot be sent becomes a reset, so this does not fail again.
            let _ = execute(stream.fail(reason), host, recorder);
            Action::Pause
        }
    }
}

/// Edits a chunk of the response body. If that fails, resets the stream: the application's body must
/// not leave the Pod.
pub fn edit_chunk(stream: &mut Stream, host: &mut impl Host, size: usize, end: bool) -> Action {
    let spaces = match stream.on_response_body(size, end) {
        ChunkEdit::Keep => return Action::Continue,
        ChunkEdit::Clear => 0,
        ChunkEdit::Spaces => SPACES,
    };
    match host.replace_chunk(size, spaces) {
        Ok(()) => Action::Continue,
        Err(_) => reset(host),
    }
}

enum Done {
    Action(Action),
    /// A callout with this token was started.
    Called(u64),
}

fn execute(effect: Effect<'_>, host: &mut impl Host, recorder: &mut Recorder) -> Result<Done, Reason> {
    let action = match effect {
        Effect::Continue => Action::Continue,
        Effect::Forward { destination, headers } => {
            host.forward(destination, &headers)?;
            Action::Continue
        }
        Effect::Callout(callout) => return host.start_callout(&callout).map(Done::Called),
        Effect::ForwardStatus { status, probe, reason } => {
            host.replace_response(status)?;
            recorder.record(&probe, reason, host);
            Action::Continue
        }
        Effect::LocalReply { status, probe, reason } => {
            record(probe.as_deref(), reason, host, recorder);
            match host.send_local_reply(status, reason) {
                Ok(()) => Action::Pause,
                Err(_) => reset(host),
            }
        }
        Effect::RefuseHook { client, probe } => {
            recorder.refuse_hook(&probe, &client, host);
            reset(host)
        }
        Effect::Reset { probe, reason } => {
            record(probe.as_deref(), reason, host, recorder);
            reset(host)
        }
    };
    Ok(Done::Action(action))
}

fn record(probe: Option<&DeclaredProbe>, reason: Reason, host: &mut impl Host, recorder: &mut Recorder) {
    match probe {
        Some(probe) => recorder.record(probe, reason, host),
        None => host.count(Metric::UnknownProbesTotal),
    }
}

fn reset(host: &mut impl Host) -> Action {
    host.reset();
    Action::Pause
}
