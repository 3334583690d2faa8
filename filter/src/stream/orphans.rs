//! Callouts whose downstream stream has ended. Envoy does not cancel them, so they still count as
//! probes in flight.

use super::{InFlight, State, Stream};

/// The orphaned callouts of one worker.
#[derive(Debug, Default)]
pub struct Orphans(Vec<Orphan>);

/// Counts as in flight until Envoy reports the callout's end, or until the probe's timeout has
/// passed again after the end of the stream.
#[derive(Debug)]
struct Orphan {
    token: u32,
    _in_flight: InFlight,
    /// In nanoseconds since 1970.
    until: u64,
}

impl Orphans {
    /// Takes over the callout of a stream that has ended, if there is one. `now` returns
    /// nanoseconds since 1970.
    pub fn add(&mut self, stream: Stream, now: impl FnOnce() -> Option<u64>) {
        let Stream { state: State::AwaitsCallout(Some(token)), in_flight: Some(in_flight) } = stream else {
            return;
        };
        let timeout = u64::try_from(in_flight.probe.plan.timeout.as_nanos()).unwrap_or(u64::MAX);
        let until = now().unwrap_or(0).saturating_add(timeout);
        self.0.push(Orphan { token, _in_flight: in_flight, until });
    }

    /// Drops the callouts that have counted for long enough.
    pub fn expire(&mut self, now: impl FnOnce() -> Option<u64>) {
        if !self.0.is_empty() {
            let now = now().unwrap_or(u64::MAX);
            self.0.retain(|orphan| now <= orphan.until);
        }
    }

    /// Drops the callout with this token, which has ended.
    pub fn end(&mut self, token: u32) {
        self.0.retain(|orphan| orphan.token != token);
    }
}
