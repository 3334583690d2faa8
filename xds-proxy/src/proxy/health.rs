//! Health reports on the upstream stream. Envoy never sees them.
//!
//! A control plane that does not know the type of the reports may end the stream, which is Envoy's too.
//! One that does so twice in a row gets no reports for some time.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use pacing::exponential;
use xds::type_url::{HEALTH_INFORMATION, PROBE};

use super::types::{Effect, Event, HealthEvent};
use super::{Proxy, Upstream};

/// Reports follow Envoy's request for listeners, as in Istio, or this time after the first request:
/// an Envoy with static listeners sends none.
const LISTENER_TIMEOUT: Duration = Duration::from_secs(10);

/// A stream that ends within this time after a report, without an answer to it, may have been ended
/// because of the report.
const REFUSED_WITHIN: Duration = Duration::from_secs(5);
/// After this many such streams of a server in a row, the reports count as the reason. After the
/// first one, the next report waits until Envoy has had time to get its configuration.
const REFUSALS: u32 = 2;
const RETRY_AFTER: Duration = Duration::from_secs(10);
/// How long a server that refuses reports gets none: the first time, and at most. After that the
/// open stream carries them again: the others may have ended for another reason.
const FIRST_PAUSE: Duration = Duration::from_secs(60);
const MAX_PAUSE: Duration = Duration::from_secs(3600);

/// What is known of a server that has ended streams after reports.
#[derive(Debug, Default)]
struct Refusal {
    /// Number of such streams in a row.
    streams: u32,
    /// Until when the server gets no reports.
    until: Duration,
}

/// The part of the health reporter.
#[derive(Debug, Default)]
pub(super) struct Health {
    /// True if the reporter waits for a stream.
    is_waiting: bool,
    /// True if the reporter uses the current stream.
    is_open: bool,
    /// The newest probe that arrived before the reporter could use the stream.
    probe: Option<Bytes>,
    /// Name of the server of the current stream.
    server: String,
    /// When the first report was sent on the current stream; `None` once the server has shown that
    /// it accepts reports.
    reported_at: Option<Duration>,
    /// True if the server has shown that on the current stream.
    is_accepted: bool,
    /// By the name of the server, of which few are configured.
    refusals: BTreeMap<String, Refusal>,
}

impl Health {
    pub(super) fn is_own(&self, type_url: &str) -> bool {
        [HEALTH_INFORMATION, PROBE].contains(&type_url)
    }

    pub(super) fn opened(&mut self, server: String) {
        self.server = server;
        (self.reported_at, self.is_accepted) = (None, false);
    }

    /// Returns true if the server of the current stream gets no reports.
    pub(super) fn is_paused(&self, now: Duration) -> bool {
        now < self.paused_until()
    }

    fn paused_until(&self) -> Duration {
        self.refusals.get(&self.server).map_or(Duration::ZERO, |refusal| refusal.until)
    }

    fn sent(&mut self, now: Duration) {
        if !self.is_accepted {
            self.reported_at.get_or_insert(now);
            self.check_outlived(now);
        }
    }

    /// A server accepts reports if its stream outlives the first one.
    fn check_outlived(&mut self, now: Duration) {
        if self.reported_at.is_some_and(|at| now.saturating_sub(at) > REFUSED_WITHIN) {
            self.accepted();
        }
    }

    fn accepted(&mut self) {
        self.is_accepted = true;
        self.reported_at = None;
        self.refusals.remove(&self.server);
    }

    /// Records that the agent has ended the stream, which refuses no report.
    pub(super) fn ended_by_agent(&mut self, now: Duration) {
        self.check_outlived(now);
        self.reported_at = None;
    }

    /// Records that the server has ended the stream. Returns true if a report may be the reason.
    pub(super) fn ended_by_server(&mut self, now: Duration, effects: &mut Vec<Effect>) -> bool {
        self.check_outlived(now);
        if self.reported_at.take().is_none() {
            return false;
        }
        let server = self.server.clone();
        let refusal = self.refusals.entry(server.clone()).or_default();
        refusal.streams = refusal.streams.saturating_add(1);
        if let Some(pauses) = refusal.streams.checked_sub(REFUSALS) {
            let pause = exponential(FIRST_PAUSE, MAX_PAUSE, pauses);
            refusal.until = now.saturating_add(pause);
            effects.push(Effect::Event(Event::HealthRefused { server, pause }));
        }
        true
    }

    pub(super) fn response(&mut self, type_url: &str, message: Bytes, effects: &mut Vec<Effect>) {
        self.accepted();
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

    pub(super) fn health_request(&mut self, now: Duration, message: Bytes, effects: &mut Vec<Effect>) {
        if self.health.is_open && matches!(self.upstream, Upstream::Open(_)) {
            self.health.sent(now);
            effects.push(Effect::SendUpstream(message));
        }
    }

    /// When reports may be sent on the current stream.
    pub(super) fn health_due(&self) -> Option<Duration> {
        match self.upstream {
            Upstream::Open(open) if self.health.is_waiting && open.is_introduced => {
                let delay = match open.is_listening {
                    true if self.health.refusals.contains_key(&self.health.server) => RETRY_AFTER,
                    true => Duration::ZERO,
                    false => LISTENER_TIMEOUT,
                };
                Some(open.introduced_at.saturating_add(delay).max(self.health.paused_until()))
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
