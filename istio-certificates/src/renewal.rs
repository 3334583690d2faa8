//! When a certificate is requested again.

use std::time::{Duration, SystemTime};

use pacing::Backoff;

use crate::issued::Issued;

/// The first and the largest delay between failed requests.
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LAST_DELAY: Duration = Duration::from_secs(30);
/// How soon the certificate of an earlier process is renewed.
const RENEWED_WITHIN: Duration = Duration::from_secs(10);
/// The shortest time between two certificates, whatever the schedule says.
const SHORTEST_USE: Duration = Duration::from_secs(1);

/// When certificates are renewed, as Istio's variables say it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// The part of its lifetime before whose end a certificate is renewed, 0 to 1.
    pub grace: f64,
    /// By how much that part differs at random, up or down.
    pub jitter: f64,
}

impl Schedule {
    /// Reads `SECRET_GRACE_PERIOD_RATIO` and `SECRET_GRACE_PERIOD_RATIO_JITTER`. As in Istio, what is not a
    /// number counts as absent.
    pub fn from_variables<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Self {
        let number = |name: &str, default: f64| {
            let number = variable(name).and_then(|text| text.parse::<f64>().ok());
            number.filter(|number| number.is_finite()).unwrap_or(default)
        };
        Self {
            grace: number("SECRET_GRACE_PERIOD_RATIO", 0.5),
            jitter: number("SECRET_GRACE_PERIOD_RATIO_JITTER", 0.01),
        }
    }

    /// `random` is in 0 to 1.
    fn renewal(self, issued: &Issued, random: f64) -> SystemTime {
        let part = self.grace + self.jitter * (2.0 * random - 1.0);
        let grace = issued.lifetime().mul_f64(part.clamp(0.0, 1.0));
        (issued.not_after - grace).max(issued.created + SHORTEST_USE)
    }
}

/// When the next certificate is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// By the clock that certificates refer to, which may be set.
    At(SystemTime),
    /// After this time has passed.
    After(Duration),
}

/// The certificate in use, and when the next one is requested. While renewals fail, the certificate stays in
/// use as long as it is valid.
pub struct Renewal {
    schedule: Schedule,
    current: Option<Issued>,
    due: Due,
    backoff: Backoff,
}

impl Renewal {
    /// `stored` is the certificate of an earlier process. It is used at once, and renewed soon: what the CA signs,
    /// and for which roots, may have changed. `random` is in 0 to 1.
    pub fn new(schedule: Schedule, stored: Option<Issued>, now: SystemTime, random: f64) -> Self {
        let current = stored.filter(|stored| stored.is_valid(now));
        let due = Due::After(current.as_ref().map_or(Duration::ZERO, |_| RENEWED_WITHIN.mul_f64(random)));
        Self { schedule, current, due, backoff: Backoff::new(FIRST_DELAY, LAST_DELAY) }
    }

    /// Returns the certificate, unless it has expired.
    pub fn certificate(&self, now: SystemTime) -> Option<&Issued> {
        self.current.as_ref().filter(|current| current.is_valid(now))
    }

    /// Returns when the next certificate is requested, counted from the last change of this.
    pub fn due(&self) -> Due {
        self.due
    }

    /// Puts a new certificate in use. `random` is in 0 to 1.
    pub fn issued(&mut self, issued: Issued, random: f64) {
        self.backoff.reset();
        self.due = Due::At(self.schedule.renewal(&issued, random));
        self.current = Some(issued);
    }

    /// Records a failed request. `random` is in 0 to 1.
    pub fn failed(&mut self, random: f64) {
        self.due = Due::After(self.backoff.next_with_jitter(FIRST_DELAY, random));
    }
}

#[cfg(test)]
mod tests;
