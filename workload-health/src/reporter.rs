//! PURE. What is said to the discovery server, and when: the level of this workload's health on change, as heartbeat, after a
//! reconnect, and as goodbye. Inputs go in one after another, effects come out; time and randomness are arguments.
//!
//! Two kinds of server take a report. Ours says hello on each stream and acknowledges what it has stored; one that knows Istio's
//! protocol alone never answers, so it is told again a little later. Which of both it is shows on each stream anew.

mod stream;
mod words;

use std::time::Duration;

use crate::{HealthReport, Hello, State};

use super::backoff::Backoff;
use stream::{Due, Stream};
pub use words::{Effect, Input, Level, Loss, Report, Saying, Settings};

/// Between the goodbye and the end of our half of the stream where nobody acknowledges, and what the other half gets after that.
const FLUSH: Duration = Duration::from_millis(100);
/// Changed certificate files are used for a new stream within so long: agents whose files change together do not reconnect together.
const REOPEN: Duration = Duration::from_secs(30);

/// The stream of this moment.
#[derive(Debug, Clone, PartialEq)]
enum Link {
    /// None, until then.
    Waiting(Duration),
    /// Asked for.
    Connecting,
    /// There it is.
    Open(Box<Stream>),
    /// Our half is at its end; then nobody waits for the other one any more.
    HalfClosed(Duration),
    /// All is said.
    Done,
}

/// What is known. Its size does not depend on how long anything takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Reporter {
    settings: Settings,
    level: Level,
    link: Link,
    backoff: Backoff,
    /// How many streams were opened.
    streams: u64,
    /// Since when the newest report waits for an acknowledgement, over all streams.
    unacknowledged: Option<Duration>,
    /// Until when the goodbye may take.
    leaving: Option<Duration>,
    /// Certificate files have changed since the stream that is on its way was asked for.
    is_outdated: bool,
}

impl Reporter {
    /// The first attempt is due at once.
    pub fn new(settings: Settings, level: Level) -> Self {
        Self {
            settings,
            level,
            link: Link::Waiting(Duration::ZERO),
            backoff: Backoff::default(),
            streams: 0,
            unacknowledged: None,
            leaving: None,
            is_outdated: false,
        }
    }

    /// Since when the newest report waits for its acknowledgement.
    pub fn unacknowledged(&self) -> Option<Duration> {
        self.unacknowledged
    }

    /// The session and whether our server is at the other end; absent: no stream, or no hello yet.
    pub fn session(&self) -> Option<u64> {
        match &self.link {
            Link::Open(stream) => stream.session(),
            _ => None,
        }
    }

    /// When [`Input::Tick`] is due next.
    pub fn next_due(&self) -> Option<Duration> {
        let link = match &self.link {
            Link::Waiting(until) | Link::HalfClosed(until) => Some(*until),
            Link::Open(stream) => stream.next_due().into_iter().chain(self.flushed(stream)).min(),
            Link::Connecting => None,
            Link::Done => return None,
        };
        link.into_iter().chain(self.leaving).min()
    }

    /// Takes one input at `now`, since the agent's start; `random` gives numbers in 0..1.
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
            Link::Open(stream) => self.backoff.lived(stream.age(now)),
            Link::Connecting => {}
            Link::HalfClosed(_) => {
                self.link = Link::HalfClosed(now);
                return;
            }
            Link::Waiting(_) | Link::Done => return,
        }
        if loss == Loss::Refused {
            self.backoff.refused();
        }
        self.link = Link::Waiting(now + self.backoff.next(random()));
    }

    fn leave(&mut self, now: Duration) {
        if self.leaving.is_some() {
            return;
        }
        self.leaving = Some(now + self.settings.goodbye_timeout);
        // There is no later attempt that could bring the goodbye.
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
        // A pending entry's server knows no group, which is no word on the probe.
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

    /// Says the level, in the words of who listens.
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
                // Nobody said hello in all this time, so nobody will acknowledge.
                self.unacknowledged = None;
            }
            if *state == State::Unknown {
                // Istio has no word for it, and unhealthy is another one.
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

    /// Does what is due.
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
                    self.backoff.lived(stream.age(now));
                    effects.extend([Effect::Close, Effect::Connect]);
                    self.link = Link::Connecting;
                }
            },
            Link::Waiting(_) | Link::Connecting | Link::HalfClosed(_) | Link::Done => {}
        }
    }

    /// When the goodbye counts as read where nobody says so.
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
