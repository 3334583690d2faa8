//! PURE. Istio's agent as a reporter: it speaks only when its state changes and once on each new stream, hears nothing, and says no
//! goodbye. It has our reporter's inputs and effects, so that both can stand in the same place.

use std::time::Duration;

use workload_health::State;
use workload_health::reporter::{Attempt, Effect, Input, Report};

/// The longest pause before another attempt.
const PAUSE: Duration = Duration::from_secs(15);

/// A plain reporter.
#[derive(Debug, Clone)]
pub struct Plain {
    link: Link,
    /// Its last word, healthy or why not.
    word: Option<Result<(), String>>,
}

#[derive(Debug, Clone, PartialEq)]
enum Link {
    Waiting(Duration),
    Connecting,
    Open,
    Done,
}

impl Plain {
    /// The first attempt is due at once.
    pub fn new() -> Self {
        Self { link: Link::Waiting(Duration::ZERO), word: None }
    }

    /// When [`Input::Tick`] is due.
    pub fn next_due(&self) -> Option<Duration> {
        match self.link {
            Link::Waiting(until) => Some(until),
            _ => None,
        }
    }

    /// Takes one input at `now`, since its start.
    pub fn step(&mut self, now: Duration, input: Input, random: &mut dyn FnMut() -> f64) -> Vec<Effect> {
        match input {
            Input::Status(level) => {
                let word = match level.state {
                    State::Unknown => return Vec::new(),
                    State::Healthy => Ok(()),
                    State::Unhealthy => Err(level.message),
                };
                let was_healthy = self.word.as_ref().map(Result::is_ok);
                if was_healthy == Some(word.is_ok()) {
                    return Vec::new();
                }
                self.word = Some(word);
                if self.link == Link::Open { self.say() } else { Vec::new() }
            }
            Input::Opened => {
                self.link = Link::Open;
                self.say()
            }
            Input::Disconnected(_) if self.link != Link::Done => {
                self.link = Link::Waiting(now + PAUSE.mul_f64(random()));
                Vec::new()
            }
            Input::Shutdown => {
                self.link = Link::Done;
                vec![Effect::Close, Effect::Done]
            }
            Input::FilesChanged if self.link == Link::Open => {
                self.link = Link::Connecting;
                vec![Effect::Close, Effect::Connect]
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

    fn say(&self) -> Vec<Effect> {
        let Some(word) = &self.word else { return Vec::new() };
        let message = word.clone().err().unwrap_or_default();
        vec![Effect::Send(Report::Istio { healthy: word.is_ok(), message }, Attempt::New)]
    }
}

impl Default for Plain {
    fn default() -> Self {
        Self::new()
    }
}
