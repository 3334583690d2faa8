//! Health reports on the upstream stream. Envoy never sees them.

use std::time::Duration;

use bytes::Bytes;

use super::types::{Effect, HealthEvent};
use super::{Proxy, Upstream};

/// Type URLs that belong to the health reporter.
const HEALTH_INFORMATION: &str = "type.googleapis.com/istio.v1.HealthInformation";
const PROBE: &str = "type.googleapis.com/app_health.v1.Probe";
/// Reports follow Envoy's request for listeners, as in Istio, or this time after the first request:
/// an Envoy with static listeners sends none.
const LISTENER_TIMEOUT: Duration = Duration::from_secs(10);

/// The part of the health reporter.
#[derive(Debug, Default)]
pub(super) struct Health {
    /// True if the reporter waits for a stream.
    is_waiting: bool,
    /// True if the reporter uses the current stream.
    is_open: bool,
    /// The newest probe that arrived before the reporter could use the stream.
    probe: Option<Bytes>,
}

impl Health {
    pub(super) fn is_own(&self, type_url: &str) -> bool {
        type_url == HEALTH_INFORMATION || type_url == PROBE
    }

    pub(super) fn response(&mut self, type_url: &str, message: Bytes, effects: &mut Vec<Effect>) {
        if self.is_open {
            effects.push(Effect::Health(HealthEvent::Response(message)));
        } else if type_url == PROBE {
            self.probe = Some(message);
        }
    }

    pub(super) fn closed(&mut self, is_rejected: bool, reason: &str, effects: &mut Vec<Effect>) {
        self.probe = None;
        if std::mem::take(&mut self.is_open) {
            effects.push(Effect::Health(HealthEvent::Closed { is_rejected, reason: reason.to_owned() }));
        }
    }
}

impl Proxy {
    /// A reporter that uses the current stream attaches again only to get another one. One that has
    /// finished does not, and the stream remains Envoy's.
    pub(super) fn attach_health(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        if std::mem::take(&mut self.health.is_open) {
            self.reopen_upstream(now, "reopened for health reports", effects);
        }
        self.health.is_waiting = true;
    }

    pub(super) fn health_request(&mut self, message: Bytes, effects: &mut Vec<Effect>) {
        if self.health.is_open && matches!(self.upstream, Upstream::Open(_)) {
            effects.push(Effect::SendUpstream(message));
        }
    }

    /// When reports may be sent on the current stream.
    pub(super) fn health_due(&self) -> Option<Duration> {
        match self.upstream {
            Upstream::Open(open) if self.health.is_waiting && open.is_introduced => {
                Some(open.introduced_at + if open.is_listening { Duration::ZERO } else { LISTENER_TIMEOUT })
            }
            _ => None,
        }
    }

    pub(super) fn announce_health(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        if self.health_due().is_some_and(|due| now >= due) {
            self.health.is_waiting = false;
            self.health.is_open = true;
            effects.push(Effect::Health(HealthEvent::Opened));
            effects
                .extend(self.health.probe.take().map(|probe| Effect::Health(HealthEvent::Response(probe))));
        }
    }
}
