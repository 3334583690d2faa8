//! Rounds of a benchmark that are repeated if other processes used the machine at the same time.
//!
//! A round begins after a pause in which the machine was quiet. If processes that the benchmark did
//! not start, or the hypervisor, then take more than a small share of the CPUs, the round is
//! repeated. If it stays disturbed, the least disturbed attempt counts, and the results say so.

mod cpu_time;

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::report::Row;
use cpu_time::CpuTime;

/// The share of all CPUs that others may use during a round. Hypervisors of rented machines take
/// several percent whenever such a machine computes.
const LIMIT: f64 = 0.10;
/// The share of rounds, in percent, that may stay disturbed: a median does not depend on few of them.
const DISTURBED_BAR: f64 = 20.0;
/// How often a round is measured until it is undisturbed.
const ATTEMPTS: u32 = 3;
/// How many rounds of a benchmark are repeated in total, so that it also ends on a busy machine.
const REPETITIONS: u32 = 20;
/// Length of the pause before a round.
const PAUSE: Duration = Duration::from_millis(300);
/// Limit for the machine to become quiet before a round.
const PATIENCE: Duration = Duration::from_secs(5);

/// The rounds of a benchmark so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QuietRounds {
    rounds: u32,
    repeated: u32,
    disturbed: u32,
    /// The highest share of all CPUs that others used during a round that counts.
    worst: f64,
}

impl QuietRounds {
    /// Measures a round, and repeats it at most twice.
    ///
    /// # Errors
    /// The first error of `measure`.
    pub async fn round<T, E>(&mut self, mut measure: impl AsyncFnMut() -> Result<T, E>) -> Result<T, E> {
        self.repeat(ATTEMPTS, async || attempt(&mut measure).await).await
    }

    /// Measures a round that cannot be repeated, or that takes minutes.
    ///
    /// # Errors
    /// The error of `measure`.
    pub async fn once<T, E>(&mut self, mut measure: impl AsyncFnMut() -> Result<T, E>) -> Result<T, E> {
        self.repeat(1, async || attempt(&mut measure).await).await
    }

    /// Returns the result of the least disturbed attempt; `attempt` also returns the share of all CPUs
    /// that others used.
    async fn repeat<T, E>(
        &mut self,
        attempts: u32,
        mut attempt: impl AsyncFnMut() -> Result<(f64, T), E>,
    ) -> Result<T, E> {
        let (mut least, mut measured) = attempt().await?;
        let mut repeated = 0;
        while least > LIMIT && repeated + 1 < attempts && self.repeated + repeated < REPETITIONS {
            repeated += 1;
            let (share, again) = attempt().await?;
            if share < least {
                (least, measured) = (share, again);
            }
        }
        self.add(least, repeated);
        Ok(measured)
    }

    fn add(&mut self, share: f64, repeated: u32) {
        self.rounds += 1;
        self.repeated += repeated;
        self.disturbed += u32::from(share > LIMIT);
        self.worst = self.worst.max(share);
    }

    /// Returns the rows that say whether the other figures can be trusted.
    pub fn rows(&self) -> [Row; 4] {
        let rounds = |name, number| Row::new(name, f64::from(number), "rounds");
        [
            rounds("rounds measured", self.rounds),
            rounds("repetitions of disturbed rounds", self.repeated),
            Row::new("rounds that stayed disturbed", self.disturbed_percent(), "%").at_most(DISTURBED_BAR),
            Row::new("highest use of all CPUs by other processes", self.worst * 100.0, "%"),
        ]
    }

    fn disturbed_percent(&self) -> f64 {
        f64::from(self.disturbed) / f64::from(self.rounds.max(1)) * 100.0
    }

    /// Returns a sentence about the rounds for the reader of the results.
    pub fn summary(&self) -> String {
        let Self { rounds, repeated, disturbed, worst } = self;
        let verdict = if self.disturbed_percent() > DISTURBED_BAR {
            "THE MACHINE WAS BUSY, measure again"
        } else {
            "the machine was quiet"
        };
        format!(
            "{verdict}: others used more than {:.0} % of the CPUs in {disturbed} of {rounds} rounds \
             (up to {:.1} %), after {repeated} repetitions",
            LIMIT * 100.0,
            worst * 100.0
        )
    }
}

/// Waits for a quiet machine, measures once, and returns the share of all CPUs that others used.
async fn attempt<T, E>(measure: &mut impl AsyncFnMut() -> Result<T, E>) -> Result<(f64, T), E> {
    let waiting = Instant::now();
    loop {
        let before = CpuTime::now();
        sleep(PAUSE).await;
        if CpuTime::now().others_since(&before) <= LIMIT || waiting.elapsed() > PATIENCE {
            break;
        }
    }
    let before = CpuTime::now();
    let measured = measure().await?;
    Ok((CpuTime::now().others_since(&before), measured))
}

#[cfg(test)]
mod tests;
