//! Carries out the decisions of the state machine.

use probe::Reason;

use crate::decision::{ChunkEdit, Decision, SPACES};
use crate::host::Host;
use crate::metrics::Metric;
use crate::recorder::Recorder;
use crate::stream::Stream;

/// What a callback returns to Envoy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterStatus {
    Continue,
    Pause,
}

/// Passes an event to the stream and carries out the decision. If that fails, carries out the decision
/// about the failure. `event` is a trait object so that the filter's file has this function once.
pub fn run<H: Host>(
    stream: &mut Stream,
    host: &mut H,
    recorder: &mut Recorder,
    event: &dyn for<'a> Fn(&'a mut Stream, &H) -> Decision<'a>,
) -> FilterStatus {
    let done = match event(stream, host) {
        Decision::Continue => Ok(FilterStatus::Continue),
        Decision::Forward { destination, headers } => {
            host.forward(destination, &headers).map(|()| FilterStatus::Continue)
        }
        Decision::Callout(callout) => host.start_callout(&callout).map(|token| {
            stream.callout_started(token);
            FilterStatus::Pause
        }),
        Decision::ForwardStatus { status, reason } => host.replace_response(status).map(|()| {
            record(stream, reason, None, host, recorder);
            FilterStatus::Continue
        }),
        Decision::LocalReply { status, reason } => {
            record(stream, reason, None, host, recorder);
            Ok(match host.send_local_reply(status, reason) {
                Ok(()) => FilterStatus::Pause,
                Err(_) => reset(host),
            })
        }
        Decision::RefuseHook { client } => {
            record(stream, Reason::Forbidden, Some(&client), host, recorder);
            Ok(reset(host))
        }
        Decision::Reset(reason) => {
            record(stream, reason, None, host, recorder);
            Ok(reset(host))
        }
    };
    done.unwrap_or_else(|reason| {
        // A local reply that cannot be sent becomes a reset, so this does not fail again.
        run(stream, host, recorder, &|stream, _| stream.fail(reason));
        FilterStatus::Pause
    })
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

/// Records the result of a request, or that this client may not call the hook.
fn record(
    stream: &Stream,
    reason: Reason,
    refused: Option<&[u8]>,
    host: &mut impl Host,
    recorder: &mut Recorder,
) {
    match (stream.probe(), refused) {
        (Some(probe), None) => recorder.record(probe, reason, host),
        (Some(probe), Some(client)) => recorder.refuse_hook(probe, client, host),
        (None, _) => host.count(Metric::UnknownProbesTotal),
    }
}

fn reset(host: &mut impl Host) -> FilterStatus {
    host.reset();
    FilterStatus::Pause
}

#[cfg(test)]
mod tests;
