//! The state machine that decides which health reports to send and when: after a state transition,
//! as a heartbeat, after a reconnect, and a final one at shutdown. It is pure: it takes inputs and
//! returns effects, and both time and randomness are arguments.
//!
//! Two kinds of servers accept reports. The app-health discovery server sends a hello message on
//! each stream and acknowledges every report that it has stored. A server with only Istio's protocol, such as istiod,
//! implements only Istio's protocol and never responds, so the agent repeats its reports there. The
//! kind is detected on each stream separately.

mod stream;
mod types;

use std::time::Duration;

use pacing::Backoff;

use crate::{HealthReason, HealthReport, Hello, State};
use stream::{Due, Stream};
pub use types::{Attempt, Disconnect, Effect, HealthStatus, Input, Report, ReporterSettings};

/// On a stream without acknowledgements, how long after the final report the client closes its half
/// of the stream. Also how long it then waits for the server to close the other half.
const HALF_CLOSE_DELAY: Duration = Duration::from_millis(100);
/// After a certificate reload the stream is reopened within this time, with random jitter, so that
/// agents whose files change together do not reconnect together.
const REOPEN_WITHIN: Duration = Duration::from_secs(30);
/// Pauses before connection attempts: the lower bound of all of them, and the first and the largest
/// upper bound.
const MIN_DELAY: Duration = Duration::from_millis(100);
const FIRST_DELAY: Duration = Duration::from_millis(500);
const MAX_DELAY: Duration = Duration::from_secs(30);
/// A stream that lasted this long resets the pauses. A server that restarts twice within a minute
/// gets the newest state soon after each start, and one that drops every stream at once does not
/// receive attempts at the highest rate.
const RESET_AFTER: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, PartialEq)]
enum StreamState {
    /// No stream; the next attempt starts at this time.
    Waiting(Duration),
    Connecting,
    Open(Box<Stream>),
    /// The client's half of the stream is closed; the rest is dropped at this time.
    HalfClosed(Duration),
    /// The reporter has finished.
    Done,
}

/// State of the reporter. Its size is bounded and does not grow over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Reporter {
    settings: ReporterSettings,
    status: HealthStatus,
    stream_state: StreamState,
    backoff: Backoff,
    /// Number of streams opened so far.
    streams: u64,
    /// When the first report since the last acknowledgement of the newest state was sent, over all
    /// streams; `None` if the newest state is acknowledged.
    unacknowledged: Option<Duration>,
    /// Deadline of the final report; `None` before shutdown.
    shutdown_deadline: Option<Duration>,
    /// True if the certificate files have changed while a connection attempt was in progress.
    is_outdated: bool,
}

impl Reporter {
    /// Creates a reporter whose first connection attempt is due immediately.
    pub fn new(settings: ReporterSettings, status: HealthStatus) -> Self {
        Self {
            settings,
            status,
            stream_state: StreamState::Waiting(Duration::ZERO),
            backoff: Backoff::new(FIRST_DELAY, MAX_DELAY),
            streams: 0,
            unacknowledged: None,
            shutdown_deadline: None,
            is_outdated: false,
        }
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
            StreamState::Waiting(until) | StreamState::HalfClosed(until) => Some(*until),
            StreamState::Open(stream) => {
                stream.next_due().into_iter().chain(self.assumed_delivered_at(stream)).min()
            }
            StreamState::Connecting => None,
            StreamState::Done => return None,
        };
        stream_state.into_iter().chain(self.shutdown_deadline).min()
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
            Input::Opened if self.stream_state == StreamState::Connecting => {
                self.opened(now, random, &mut effects)
            }
            Input::Disconnected(loss) => self.disconnected(now, loss, random),
            Input::Shutdown => self.shut_down(now),
            Input::Tick | Input::Opened => {}
            Input::FilesChanged => match &mut self.stream_state {
                StreamState::Open(stream) => stream.reopen_by(now + REOPEN_WITHIN.mul_f64(random())),
                stream_state => self.is_outdated = *stream_state == StreamState::Connecting,
            },
            Input::Acknowledged(version) => self.acknowledged(now, &version),
            Input::Hello { hello, version, nonce } => {
                self.hello(now, hello, (version, nonce), random, &mut effects);
            }
            Input::Malformed { text, nonce } => self.ack_or_nack(nonce, Err(text), &mut effects),
            Input::Validated { stream, version, nonce, result } => {
                if stream == self.streams {
                    self.ack_or_nack(nonce, result.map(|()| version), &mut effects);
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
        let is_transition = status.generation != self.status.generation;
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
        let mut stream = Stream::new(now);
        if std::mem::take(&mut self.is_outdated) {
            stream.reopen_by(now + REOPEN_WITHIN.mul_f64(random()));
        }
        self.stream_state = StreamState::Open(Box::new(stream));
        self.send_report(now, Attempt::New, random, effects);
    }

    fn disconnected(&mut self, now: Duration, loss: Disconnect, random: &mut dyn FnMut() -> f64) {
        self.is_outdated = false;
        match &self.stream_state {
            StreamState::Open(stream) => reset_backoff(&mut self.backoff, stream.age(now)),
            StreamState::Connecting => {}
            StreamState::HalfClosed(_) => {
                self.stream_state = StreamState::HalfClosed(now);
                return;
            }
            StreamState::Waiting(_) | StreamState::Done => return,
        }
        if loss == Disconnect::Rejected {
            // Another attempt would be rejected too.
            self.backoff.jump_to_max();
        }
        let delay = match self.settings.is_proxied {
            true => Duration::ZERO,
            false => self.backoff.next_with_jitter(MIN_DELAY, random()),
        };
        self.stream_state = StreamState::Waiting(now + delay);
    }

    fn shut_down(&mut self, now: Duration) {
        if self.shutdown_deadline.is_some() {
            return;
        }
        self.shutdown_deadline = Some(now + self.settings.final_report_timeout);
        // A later attempt could not deliver the final report in time.
        if let StreamState::Waiting(until) = &mut self.stream_state {
            *until = now;
        }
    }

    fn acknowledged(&mut self, now: Duration, version: &str) {
        let StreamState::Open(stream) = &mut self.stream_state else { return };
        let Some((epoch, generation)) = version.rsplit_once('/') else { return };
        let (true, Ok(generation)) = (epoch == self.settings.epoch, generation.parse()) else { return };
        stream.acknowledged(now, generation);
        if generation == self.status.generation {
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
            effects.push(Effect::ValidateProbe { stream: self.streams, version, nonce, probe });
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
        let HealthStatus { generation, state, reason, message, .. } = &self.status;
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
        let HealthStatus { generation, state, reason, message, since, last_probe, interval, verdict_due } =
            &self.status;
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
            effects.extend([Effect::Close, Effect::Done]);
            self.stream_state = StreamState::Done;
            return;
        }
        if self.final_report_delivered(now) {
            effects.push(Effect::HalfClose);
            self.stream_state = StreamState::HalfClosed(now + HALF_CLOSE_DELAY);
        }
        match &mut self.stream_state {
            StreamState::Waiting(until) if now >= *until => {
                effects.push(Effect::Connect);
                self.stream_state = StreamState::Connecting;
            }
            StreamState::HalfClosed(until) if now >= *until => {
                effects.extend([Effect::Close, Effect::Done]);
                self.stream_state = StreamState::Done;
            }
            StreamState::Open(stream) => match stream.due(now) {
                Due::None => {}
                Due::Send(attempt) => self.send_report(now, attempt, random, effects),
                Due::Unresponsive => {
                    effects.push(Effect::Close);
                    self.disconnected(now, Disconnect::Transient, random);
                }
                Due::Reopen => {
                    reset_backoff(&mut self.backoff, stream.age(now));
                    effects.extend([Effect::Close, Effect::Connect]);
                    self.stream_state = StreamState::Connecting;
                }
            },
            StreamState::Waiting(_)
            | StreamState::Connecting
            | StreamState::HalfClosed(_)
            | StreamState::Done => {}
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
            None => stream.is_acknowledged(self.status.generation),
        }
    }
}

fn reset_backoff(backoff: &mut Backoff, stream_age: Duration) {
    if stream_age >= RESET_AFTER {
        backoff.reset();
    }
}

#[cfg(test)]
mod tests;
