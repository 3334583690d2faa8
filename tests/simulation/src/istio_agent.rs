//! A model of Istio's agent: it reports only when its state changes and once on each new stream,
//! ignores responses, and sends no final report. It has the inputs and effects of the real
//! agent, so that it can take its place.

use std::time::Duration;

use bytes::Bytes;
use workload_health::State;
use workload_health::reporter::HealthStatus;
use xds::{Request, Variant, health};
use xds_proxy::{Effect, HealthEvent, Input};

/// The longest pause before another attempt.
const PAUSE: Duration = Duration::from_secs(15);

#[derive(Debug, Clone)]
pub struct IstioAgent {
    link: Link,
    /// The last reported health: healthy, or the reason why not.
    word: Option<Result<(), String>>,
}

#[derive(Debug, Clone, PartialEq)]
enum Link {
    Waiting(Duration),
    Connecting,
    Open,
    Done,
}

impl IstioAgent {
    /// The first attempt is due at once.
    pub fn new() -> Self {
        Self { link: Link::Waiting(Duration::ZERO), word: None }
    }

    /// Returns when [`Input::Tick`] is due.
    pub fn next_due(&self) -> Option<Duration> {
        match self.link {
            Link::Waiting(until) => Some(until),
            _ => None,
        }
    }

    /// Processes one input at `now`, the time since the start of the run.
    pub fn step(&mut self, now: Duration, input: Input, random: &mut dyn FnMut() -> f64) -> Vec<Effect> {
        match input {
            Input::Health(HealthStatus { verdict, .. }) => {
                let word = match verdict.state {
                    State::Unknown => return Vec::new(),
                    State::Healthy => Ok(()),
                    State::Unhealthy => Err(verdict.message),
                };
                let was_healthy = self.word.as_ref().map(Result::is_ok);
                if was_healthy == Some(word.is_ok()) {
                    return Vec::new();
                }
                self.word = Some(word);
                if self.link == Link::Open { self.send_report() } else { Vec::new() }
            }
            Input::UpstreamOpened { .. } => {
                self.link = Link::Open;
                [send(&health::first_request(Bytes::new()))].into_iter().chain(self.send_report()).collect()
            }
            Input::UpstreamClosed { .. } if self.link != Link::Done => {
                self.link = Link::Waiting(now + PAUSE.mul_f64(random()));
                Vec::new()
            }
            Input::Terminating => {
                self.link = Link::Done;
                vec![Effect::CloseUpstream, Effect::Health(HealthEvent::Done)]
            }
            Input::FilesChanged if self.link == Link::Open => {
                self.link = Link::Connecting;
                vec![Effect::CloseUpstream, Effect::Connect]
            }
            Input::Tick => match self.link {
                Link::Waiting(until) if now >= until => {
                    self.link = Link::Connecting;
                    vec![Effect::Connect]
                }
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    fn send_report(&self) -> Vec<Effect> {
        let Some(word) = &self.word else { return Vec::new() };
        vec![send(&health::report(word.as_ref().err().map(String::as_str), None))]
    }
}

fn send(request: &Request) -> Effect {
    Effect::SendUpstream(request.encode(Variant::Sotw))
}

impl Default for IstioAgent {
    fn default() -> Self {
        Self::new()
    }
}
