//! Carries out the effects of a stream.

use super::metrics::Metrics;
use crate::abi::{self, Action, HeaderMap};
use crate::encoding;
use crate::stats;
use crate::stream::Effect;

const SET_FILTER_STATE: &str = "set_envoy_filter_state";

/// What has been done.
pub(super) enum Done {
    Action(Action),
    /// A callout with this token was started.
    Called(u32),
}

/// Carries out an effect. An error is the status of the host call that failed.
pub(super) fn execute(effect: Effect, metrics: &mut Metrics) -> abi::Result<Done> {
    let action = match effect {
        Effect::Continue => Action::Continue,
        Effect::Forward { filter_state, headers } => {
            abi::foreign_function(SET_FILTER_STATE, filter_state)?;
            abi::set_headers(HeaderMap::Request, &encoding::pairs(&headers))?;
            Action::Continue
        }
        Effect::Callout(callout) => {
            let timeout_ms = u32::try_from(callout.timeout.as_millis()).unwrap_or(u32::MAX);
            let headers = encoding::pairs(&callout.headers);
            return abi::http_call(callout.cluster, &headers, callout.body, timeout_ms).map(Done::Called);
        }
        Effect::ForwardStatus { status, probe, reason } => {
            let status = status.to_string();
            abi::set_headers(HeaderMap::Response, &encoding::pairs(&[(b":status", status.as_bytes())]))?;
            metrics.record(&probe, reason);
            Action::Continue
        }
        Effect::LocalReply { status, probe, reason } => {
            match probe {
                Some(probe) => metrics.record(&probe, reason),
                None => metrics.increment(stats::UNKNOWN_PROBES_TOTAL),
            }
            match abi::send_local_response(status, reason.word(), &reason.body()) {
                Ok(()) => Action::Pause,
                Err(_) => reset(),
            }
        }
        Effect::Reset { probe, reason } => {
            metrics.record(&probe, reason);
            reset()
        }
    };
    Ok(Done::Action(action))
}

pub(super) fn reset() -> Action {
    let _ = abi::reset_request();
    Action::Pause
}
