//! The state machine that decides which health reports to send and when: after a state transition,
//! as a heartbeat, on each new stream, and a final one at shutdown. It is pure: it takes inputs and
//! returns effects, and both time and randomness are arguments. It does not open streams: its owner
//! tells it when it may use one.
//!
//! Two kinds of servers accept reports. The app-health discovery server sends a hello message on
//! each stream and acknowledges every report that it has stored. A server with only Istio's protocol,
//! such as istiod, never responds, so the agent repeats its reports there. The kind is detected on each
//! stream separately.

mod stream;
mod types;

use std::time::Duration;

use crate::{HealthReason, HealthReport, Hello, Report, State, Verdict};
use stream::{Due, Stream};
pub use types::{Attempt, Effect, HealthStatus, HelloId, Input, ReporterSettings};

/// On a stream without acknowledgements, how long after the final report it counts as delivered. Also how
/// long the stream may take to end then.
const HALF_CLOSE_DELAY: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, PartialEq)]
enum StreamState {
    /// No stream may be used.
    Closed,
    Open(Box<Stream>),
    /// The final report is delivered. The reporter finishes at this time.
    Delivered(Duration),
    /// The reporter has finished.
    Done,
}

/// State of the reporter. Its size is bounded and does not grow over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Reporter {
    settings: ReporterSettings,
    status: HealthStatus,
    stream_state: StreamState,
    /// Number of streams opened so far.
    streams: u64,
    /// When the first report since the last acknowledgement of the newest state was sent, over all
    /// streams; `None` if the newest state is acknowledged.
    unacknowledged: Option<Duration>,
    /// Deadline of the final report; `None` before shutdown.
    shutdown_deadline: Option<Duration>,
}

impl Reporter {
    /// Creates a reporter without a stream.
    pub fn new(settings: ReporterSettings, status: HealthStatus) -> Self {
        Self {
            settings,
            status,
            stream_state: StreamState::Closed,
            streams: 0,
            unacknowledged: None,
            shutdown_deadline: None,
        }
    }

    /// Creates a reporter that never reports anything.
    pub fn silent(settings: ReporterSettings, status: HealthStatus) -> Self {
        Self { stream_state: StreamState::Done, ..Self::new(settings, status) }
    }

    /// Since when the newest state waits for its acknowledgement, over all streams.
    pub fn unacknowledged(&self) -> Option<Duration> {
        self.unacknowledged
    }

    /// The session of the hello message on the current stream. `None` if there is no stream or no
    /// hello has arrived on it.
    pub fn session(&self) -> Option<u64> {
        match &self.stream_state {
            StreamState::Open(stream) => stream.session(),
            _ => None,
        }
    }

    /// When the next [`Input::Tick`] is due.
    pub fn next_due(&self) -> Option<Duration> {
        let stream_state = match &self.stream_state {
            StreamState::Delivered(until) => Some(*until),
            StreamState::Open(stream) => {
                stream.next_due().into_iter().chain(self.assumed_delivered_at(stream)).min()
            }
            StreamState::Closed => None,
            StreamState::Done => return None,
        };
        stream_state.into_iter().chain(self.shutdown_deadline).min()
    }

    /// Returns true once the final report is delivered or has timed out.
    pub fn is_done(&self) -> bool {
        self.stream_state == StreamState::Done
    }

    fn closed(&mut self, now: Duration) {
        match self.stream_state {
            StreamState::Open(_) => self.stream_state = StreamState::Closed,
            StreamState::Delivered(_) => self.stream_state = StreamState::Delivered(now),
            StreamState::Closed | StreamState::Done => {}
        }
    }

    /// Processes one input. `now` is the time since the agent's start; `random` returns numbers in
    /// 0..1.
    pub fn step(&mut self, now: Duration, input: Input, random: &mut dyn FnMut() -> f64) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.stream_state == StreamState::Done {
            return effects;
        }
        match input {
            Input::Status(status) => self.status_changed(now, status, random, &mut effects),
            Input::Opened => self.opened(now, random, &mut effects),
            Input::Shutdown => {
                self.shutdown_deadline.get_or_insert(now + self.settings.final_report_timeout);
            }
            Input::Closed => self.closed(now),
            Input::Tick => {}
            Input::Acknowledged(version) => self.acknowledged(now, &version),
            Input::Hello { hello, version, nonce } => {
                self.hello(now, hello, (version, nonce), random, &mut effects);
            }
            Input::Malformed { text, nonce } => self.ack_or_nack(nonce, Err(text), &mut effects),
            Input::Validated { hello, result } => {
                if hello.stream == self.streams {
                    self.ack_or_nack(hello.nonce, result.map(|()| hello.version), &mut effects);
                }
            }
        }
        self.run_due(now, random, &mut effects);
        effects
    }

    fn status_changed(
        &mut self,
        now: Duration,
        status: HealthStatus,
        random: &mut dyn FnMut() -> f64,
        effects: &mut Vec<Effect>,
    ) {
        let is_transition = status.verdict.generation != self.status.verdict.generation;
        self.status = status;
        if is_transition {
            self.send_report(now, Attempt::New, random, effects);
            if let StreamState::Open(stream) = &mut self.stream_state {
                stream.transitioned(now);
            }
        }
    }

    fn opened(&mut self, now: Duration, random: &mut dyn FnMut() -> f64, effects: &mut Vec<Effect>) {
        self.streams += 1;
        self.stream_state = StreamState::Open(Box::new(Stream::new(now)));
        self.send_report(now, Attempt::New, random, effects);
    }

    fn acknowledged(&mut self, now: Duration, version: &str) {
        let StreamState::Open(stream) = &mut self.stream_state else { return };
        let Some((epoch, generation)) = version.rsplit_once('/') else { return };
        let (true, Ok(generation)) = (epoch == self.settings.epoch, generation.parse()) else { return };
        stream.acknowledged(now, generation);
        if generation == self.status.verdict.generation {
            self.unacknowledged = None;
        }
    }

    fn hello(
        &mut self,
        now: Duration,
        hello: Hello,
        (version, nonce): (String, String),
        random: &mut dyn FnMut() -> f64,
        effects: &mut Vec<Effect>,
    ) {
        let StreamState::Open(stream) = &mut self.stream_state else { return };
        let Hello { session, heartbeat, probe } = hello;
        let is_new = stream.hello(session, heartbeat.min(self.settings.heartbeat));
        if is_new {
            self.send_report(now, Attempt::New, random, effects);
        }
        // For a pending WorkloadEntry the server does not know the WorkloadGroup yet, so a missing
        // probe does not mean that the probe in force was removed.
        if session == 0 && probe.is_none() {
            self.ack_or_nack(nonce, Ok(version), effects);
        } else {
            let hello = HelloId { stream: self.streams, version, nonce };
            effects.push(Effect::ValidateProbe { hello, probe });
        }
    }

    fn ack_or_nack(&mut self, nonce: String, result: Result<String, String>, effects: &mut Vec<Effect>) {
        let StreamState::Open(stream) = &mut self.stream_state else { return };
        let nack_reason = result.map(|version| stream.accepted = version).err();
        effects.push(Effect::AckOrNack { version: stream.accepted.clone(), nonce, nack_reason });
    }

    /// Sends the current health status, in the format that the server understands.
    fn send_report(
        &mut self,
        now: Duration,
        attempt: Attempt,
        random: &mut dyn FnMut() -> f64,
        effects: &mut Vec<Effect>,
    ) {
        let StreamState::Open(stream) = &mut self.stream_state else { return };
        let Verdict { generation, state, reason, message } = &self.status.verdict;
        stream.sent(now, *generation, self.settings.istio_heartbeat, random());
        let report = if stream.session().is_some() {
            if stream.server_acknowledges() {
                self.unacknowledged.get_or_insert(now);
            }
            Report::AppHealth(self.report(now))
        } else {
            if attempt == Attempt::Retry {
                // No hello has arrived for several seconds, so the server sends no
                // acknowledgements.
                self.unacknowledged = None;
            }
            if *state == State::Unknown {
                // Istio's protocol has no unknown state, and reporting unhealthy instead would be
                // wrong.
                if attempt == Attempt::Retry && *reason == HealthReason::NoProbe {
                    effects.push(Effect::NothingToReport);
                }
                return;
            }
            let healthy = *state == State::Healthy;
            Report::Istio { healthy, message: if healthy { String::new() } else { message.clone() } }
        };
        effects.push(Effect::Send(report, attempt));
    }

    fn report(&self, now: Duration) -> HealthReport {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let ago = |then: Duration| millis(now.saturating_sub(then));
        let HealthStatus { verdict, since, last_probe, interval, verdict_due } = &self.status;
        let Verdict { generation, state, reason, message } = verdict;
        HealthReport {
            epoch: self.settings.epoch.clone(),
            generation: *generation,
            state: *state,
            reason: reason.to_string(),
            message: message.clone(),
            since_ms: ago(*since),
            last_probe_ago_ms: last_probe.map(ago),
            interval_ms: interval.map(millis),
            verdict_within_ms: verdict_due.map(|due| millis(due.saturating_sub(now))),
        }
    }

    /// Performs the action that is due at `now`, if any.
    fn run_due(&mut self, now: Duration, random: &mut dyn FnMut() -> f64, effects: &mut Vec<Effect>) {
        if self.shutdown_deadline.is_some_and(|until| now >= until) {
            effects.push(Effect::Done);
            self.stream_state = StreamState::Done;
            return;
        }
        if self.final_report_delivered(now) {
            effects.push(Effect::Delivered);
            self.stream_state = StreamState::Delivered(now + HALF_CLOSE_DELAY);
        }
        match &mut self.stream_state {
            StreamState::Delivered(until) if now >= *until => {
                effects.push(Effect::Done);
                self.stream_state = StreamState::Done;
            }
            StreamState::Open(stream) => match stream.due(now) {
                Due::None => {}
                Due::Send(attempt) => self.send_report(now, attempt, random, effects),
                Due::Unresponsive => {
                    effects.push(Effect::Unresponsive);
                    self.stream_state = StreamState::Closed;
                }
            },
            StreamState::Closed | StreamState::Delivered(_) | StreamState::Done => {}
        }
    }

    /// When the final report counts as delivered on a stream without acknowledgements.
    fn assumed_delivered_at(&self, stream: &Stream) -> Option<Duration> {
        let is_final_report = self.shutdown_deadline.is_some() && self.status.is_final();
        (is_final_report && !stream.server_acknowledges()).then(|| stream.last_sent() + HALF_CLOSE_DELAY)
    }

    fn final_report_delivered(&self, now: Duration) -> bool {
        let StreamState::Open(stream) = &self.stream_state else { return false };
        if self.shutdown_deadline.is_none() || !self.status.is_final() {
            return false;
        }
        match self.assumed_delivered_at(stream) {
            Some(at) => now >= at,
            None => stream.is_acknowledged(self.status.verdict.generation),
        }
    }
}

#[cfg(test)]
mod tests;
