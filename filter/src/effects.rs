//! Carries out the effects of the state machine.

use probe::Reason;

use crate::config::DeclaredProbe;
use crate::decision::{ChunkEdit, SPACES};
use crate::host::Host;
use crate::metrics::Metric;
use crate::recorder::Recorder;
use crate::stream::{Effect, Stream};

/// What a callback returns to Envoy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterStatus {
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
) -> FilterStatus {
    let effect = event(stream, host);
    match execute(effect, host, recorder) {
        Ok(Done::Status(status)) => status,
        Ok(Done::Called(token)) => {
            stream.callout_started(token);
            FilterStatus::Pause
        }
        Err(reason) => {
            // A local reply that cannot be sent becomes a reset, so this does not fail again.
            let _ = execute(stream.fail(reason), host, recorder);
            FilterStatus::Pause
        }
    }
}

/// Edits a chunk of the response body. If that fails, resets the stream: the application's body must
/// not leave the Pod.
pub fn edit_chunk(stream: &mut Stream, host: &mut impl Host, size: usize, end: bool) -> FilterStatus {
    let spaces = match stream.on_response_body(size, end) {
        ChunkEdit::Keep => return FilterStatus::Continue,
        ChunkEdit::Clear => 0,
        ChunkEdit::Spaces => SPACES,
    };
    match host.replace_chunk(size, spaces) {
        Ok(()) => FilterStatus::Continue,
        Err(_) => reset(host),
    }
}

enum Done {
    Status(FilterStatus),
    /// A callout with this token was started.
    Called(u64),
}

fn execute(effect: Effect<'_>, host: &mut impl Host, recorder: &mut Recorder) -> Result<Done, Reason> {
    let status = match effect {
        Effect::Continue => FilterStatus::Continue,
        Effect::Forward { destination, headers } => {
            host.forward(destination, &headers)?;
            FilterStatus::Continue
        }
        Effect::Callout(callout) => return host.start_callout(&callout).map(Done::Called),
        Effect::ForwardStatus { status, probe, reason } => {
            host.replace_response(status)?;
            recorder.record(&probe, reason, host);
            FilterStatus::Continue
        }
        Effect::LocalReply { status, probe, reason } => {
            record(probe.as_deref(), reason, host, recorder);
            match host.send_local_reply(status, reason) {
                Ok(()) => FilterStatus::Pause,
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
    Ok(Done::Status(status))
}

fn record(probe: Option<&DeclaredProbe>, reason: Reason, host: &mut impl Host, recorder: &mut Recorder) {
    match probe {
        Some(probe) => recorder.record(probe, reason, host),
        None => host.count(Metric::UnknownProbesTotal),
    }
}

fn reset(host: &mut impl Host) -> FilterStatus {
    host.reset();
    FilterStatus::Pause
}

#[cfg(test)]
mod tests;
