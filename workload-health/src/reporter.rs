//! The state machine that decides which health reports to send and when: after a state transition,
//! as a heartbeat, after a reconnect, and a final one at shutdown. It is pure: it takes inputs and
//! returns effects, and both time and randomness are arguments.
//!
//! Two kinds of servers accept reports. The app-health discovery server sends a hello message on
//! each stream and acknowledges every report that it has stored. A plain server, such as istiod,
//! implements only Istio's protocol and never responds, so the agent repeats its reports there. The
//! kind is detected on each stream separately.

mod stream;
mod words;

use std::time::Duration;

use pacing::Backoff;

use crate::{HealthReport, Hello, State};
use stream::{Due, Stream};
pub use words::{Effect, Input, Level, Loss, Report, Saying, Settings};

/// On a stream without acknowledgements, how long after the final report the client closes its half
/// of the stream. Also how long it then waits for the server to close the other half.
const FLUSH: Duration = Duration::from_millis(100);
/// After a certificate reload the stream is reopened within this time, with random jitter, so that
/// agents whose files change together do not reconnect together.
const REOPEN: Duration = Duration::from_secs(30);
/// Pauses before connection attempts: the lower bound of all of them, and the first and the largest
/// upper bound. A stream that lasted for the largest pause resets them.
const MIN_DELAY: Duration = Duration::from_millis(100);
const FIRST_DELAY: Duration = Duration::from_millis(500);
const MAX_DELAY: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, PartialEq)]
enum Link {
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
    settings: Settings,
    level: Level,
    link: Link,
    backoff: Backoff,
    /// Number of streams opened so far.
    streams: u64,
    /// When the first report since the last acknowledgement of the newest state was sent, over all
    /// streams; `None` if the newest state is acknowledged.
    unacknowledged: Option<Duration>,
    /// Deadline of the final report; `None` before shutdown.
    leaving: Option<Duration>,
    /// True if the certificate files have changed while a connection attempt was in progress.
    is_outdated: bool,
}

impl Reporter {
    /// Creates a reporter whose first connection attempt is due immediately.
    pub fn new(settings: Settings, level: Level) -> Self {
        Self {
            settings,
            level,
            link: Link::Waiting(Duration::ZERO),
            backoff: Backoff::new(FIRST_DELAY, MAX_DELAY),
            streams: 0,
            unacknowledged: None,
            leaving: None,
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
        match &self.link {
            Link::Open(stream) => stream.session(),
            _ => None,
        }
    }

    /// When the next [`Input::Tick`] is due.
    pub fn next_due(&self) -> Option<Duration> {
        let link = match &self.link {
            Link::Waiting(until) | Link::HalfClosed(until) => Some(*until),
            Link::Open(stream) => stream.next_due().into_iter().chain(self.flushed(stream)).min(),
            Link::Connecting => None,
            Link::Done => return None,
        };
        link.into_iter().chain(self.leaving).min()
    }

    /// Processes one input. `now` is the time since the agent's start; `random` returns numbers in
    /// 0..1.
    pub fn step(&mut self, now: Duration, input: Input, random: &mut dyn FnMut() -> f64) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.link == Link::Done {
            return effects;
        }
        match input {
            Input::Level(level) => self.level(now, level, random, &mut effects),
            Input::Opened if self.link == Link::Connecting => self.opened(now, random, &mut effects),
            Input::Lost(loss) => self.lost(now, loss, random),
            Input::Leave => self.leave(now),
            Input::Tick | Input::Opened => {}
            Input::FilesChanged => match &mut self.link {
                Link::Open(stream) => stream.reopen_by(now + REOPEN.mul_f64(random())),
                link => self.is_outdated = *link == Link::Connecting,
            },
            Input::Acknowledged(version) => self.acknowledged(now, &version),
            Input::Hello { hello, version, nonce } => {
                self.hello(now, hello, (version, nonce), random, &mut effects);
            }
            Input::Garbled { text, nonce } => self.answer(nonce, Err(text), &mut effects),
            Input::Judged { stream, version, nonce, verdict } => {
                if stream == self.streams {
                    self.answer(nonce, verdict.map(|()| version), &mut effects);
                }
            }
        }
        self.pass(now, random, &mut effects);
        effects
    }

    fn level(
        &mut self,
        now: Duration,
        level: Level,
        random: &mut dyn FnMut() -> f64,
        effects: &mut Vec<Effect>,
    ) {
        let is_flip = level.generation != self.level.generation;
        self.level = level;
        if is_flip {
            self.say(now, Saying::Anew, random, effects);
            if let Link::Open(stream) = &mut self.link {
                stream.flipped(now);
            }
        }
    }

    fn opened(&mut self, now: Duration, random: &mut dyn FnMut() -> f64, effects: &mut Vec<Effect>) {
        self.streams += 1;
        let mut stream = Stream::new(now);
        if std::mem::take(&mut self.is_outdated) {
            stream.reopen_by(now + REOPEN.mul_f64(random()));
        }
        self.link = Link::Open(Box::new(stream));
        self.say(now, Saying::Anew, random, effects);
    }

    fn lost(&mut self, now: Duration, loss: Loss, random: &mut dyn FnMut() -> f64) {
        self.is_outdated = false;
        match &self.link {
            Link::Open(stream) => self.backoff.reset_after(stream.age(now)),
            Link::Connecting => {}
            Link::HalfClosed(_) => {
                self.link = Link::HalfClosed(now);
                return;
            }
            Link::Waiting(_) | Link::Done => return,
        }
        if loss == Loss::Refused {
            // Another attempt would be rejected too.
            self.backoff.jump_to_max();
        }
        self.link = Link::Waiting(now + self.backoff.next_with_jitter(MIN_DELAY, random()));
    }

    fn leave(&mut self, now: Duration) {
        if self.leaving.is_some() {
            return;
        }
        self.leaving = Some(now + self.settings.goodbye_timeout);
        // A later attempt could not deliver the final report in time.
        if let Link::Waiting(until) = &mut self.link {
            *until = now;
        }
    }

    fn acknowledged(&mut self, now: Duration, version: &str) {
        let Link::Open(stream) = &mut self.link else { return };
        let Some((epoch, generation)) = version.rsplit_once('/') else { return };
        let (true, Ok(generation)) = (epoch == self.settings.epoch, generation.parse()) else { return };
        stream.acknowledged(now, generation);
        if generation == self.level.generation {
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
        let Link::Open(stream) = &mut self.link else { return };
        let Hello { session, heartbeat, probe } = hello;
        let is_new = stream.hello(session, heartbeat.min(self.settings.heartbeat));
        if is_new {
            self.say(now, Saying::Anew, random, effects);
        }
        // For a pending WorkloadEntry the server does not know the WorkloadGroup yet, so a missing
        // probe does not mean that the probe in force was removed.
        if session == 0 && probe.is_none() {
            self.answer(nonce, Ok(version), effects);
        } else {
            effects.push(Effect::Offer { stream: self.streams, version, nonce, probe });
        }
    }

    fn answer(&mut self, nonce: String, verdict: Result<String, String>, effects: &mut Vec<Effect>) {
        let Link::Open(stream) = &mut self.link else { return };
        let refusal = verdict.map(|version| stream.accepted = version).err();
        effects.push(Effect::Answer { version: stream.accepted.clone(), nonce, refusal });
    }

    /// Sends the current health status, in the format that the server understands.
    fn say(
        &mut self,
        now: Duration,
        saying: Saying,
        random: &mut dyn FnMut() -> f64,
        effects: &mut Vec<Effect>,
    ) {
        let Link::Open(stream) = &mut self.link else { return };
        let Level { generation, state, message, .. } = &self.level;
        stream.said(now, *generation, self.settings.plain_heartbeat, random());
        let report = if stream.session().is_some() {
            if stream.is_acknowledging() {
                self.unacknowledged.get_or_insert(now);
            }
            Report::AppHealth(self.report(now))
        } else {
            if saying == Saying::Again {
                // No hello has arrived for several seconds, so the server sends no
                // acknowledgements.
                self.unacknowledged = None;
            }
            if *state == State::Unknown {
                // Istio's protocol has no unknown state, and reporting unhealthy instead would be
                // wrong.
                return;
            }
            let healthy = *state == State::Healthy;
            Report::Plain { healthy, message: if healthy { String::new() } else { message.clone() } }
        };
        effects.push(Effect::Send(report, saying));
    }

    fn report(&self, now: Duration) -> HealthReport {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let ago = |then: Duration| millis(now.saturating_sub(then));
        let Level { generation, state, reason, message, since, last_probe, interval, verdict_due } =
            &self.level;
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
    fn pass(&mut self, now: Duration, random: &mut dyn FnMut() -> f64, effects: &mut Vec<Effect>) {
        if self.leaving.is_some_and(|until| now >= until) {
            effects.extend([Effect::Close, Effect::Done]);
            self.link = Link::Done;
            return;
        }
        if self.has_said_goodbye(now) {
            effects.push(Effect::HalfClose);
            self.link = Link::HalfClosed(now + FLUSH);
        }
        match &mut self.link {
            Link::Waiting(until) if now >= *until => {
                effects.push(Effect::Connect);
                self.link = Link::Connecting;
            }
            Link::HalfClosed(until) if now >= *until => {
                effects.extend([Effect::Close, Effect::Done]);
                self.link = Link::Done;
            }
            Link::Open(stream) => match stream.due(now) {
                Due::Nothing => {}
                Due::Say(saying) => self.say(now, saying, random, effects),
                Due::Silent => {
                    effects.push(Effect::Close);
                    self.lost(now, Loss::Broken, random);
                }
                Due::Reopen => {
                    self.backoff.reset_after(stream.age(now));
                    effects.extend([Effect::Close, Effect::Connect]);
                    self.link = Link::Connecting;
                }
            },
            Link::Waiting(_) | Link::Connecting | Link::HalfClosed(_) | Link::Done => {}
        }
    }

    /// When the final report counts as delivered on a stream without acknowledgements.
    fn flushed(&self, stream: &Stream) -> Option<Duration> {
        let is_goodbye = self.leaving.is_some() && self.level.is_final();
        (is_goodbye && !stream.is_acknowledging()).then(|| stream.last_said() + FLUSH)
    }

    fn has_said_goodbye(&self, now: Duration) -> bool {
        let Link::Open(stream) = &self.link else { return false };
        if self.leaving.is_none() || !self.level.is_final() {
            return false;
        }
        match self.flushed(stream) {
            Some(at) => now >= at,
            None => stream.is_acknowledged(self.level.generation),
        }
    }
}

#[cfg(test)]
mod tests;
