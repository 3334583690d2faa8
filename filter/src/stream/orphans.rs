//! Callouts whose downstream stream has ended. proxy-wasm does not cancel them, so they still count as
//! probes in flight.

use super::{State, Stream};
use crate::permits::Permit;

/// The orphaned callouts of one worker.
#[derive(Debug, Default)]
pub struct Orphans(Vec<Orphan>);

/// Counts as in flight until the probe's timeout has passed again after the end of the stream. The
/// callout ends before that, but the SDK reports the end to no stream that has ended.
#[derive(Debug)]
struct Orphan {
    _permit: Permit,
    /// In nanoseconds of the host's clock.
    until: u64,
}

impl Orphans {
    /// Takes over the callout of a stream that has ended, if there is one. `now` returns
    /// nanoseconds of any clock.
    pub fn add(&mut self, stream: Stream, now: impl FnOnce() -> u64) {
        let Stream { state: State::AwaitsCallout(Some(_)), permit: Some(permit), request: Some(request) } =
            stream
        else {
            return;
        };
        let timeout = u64::try_from(request.probe().plan.timeout.as_nanos()).unwrap_or(u64::MAX);
        let until = now().saturating_add(timeout);
        self.0.push(Orphan { _permit: permit, until });
    }

    /// Drops the callouts that have counted for long enough.
    pub fn expire(&mut self, now: impl FnOnce() -> u64) {
        if !self.0.is_empty() {
            let now = now();
            self.0.retain(|orphan| now <= orphan.until);
        }
    }
}
