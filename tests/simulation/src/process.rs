//! PURE. One run of an agent: its probe, its state, and who speaks for it. A new run has a new epoch and knows nothing.

use std::num::NonZeroU32;
use std::time::Duration;

use discovery::entries::StreamId;
use workload_health::reporter::{Effect, HealthStatus, Input, Reporter, ReporterSettings};
use workload_health::{HealthState, Thresholds, WorkloadProbe};

use super::plain::Plain;
use super::plan::{Kind, MachinePlan, ProbePlan};

/// A run.
#[derive(Debug)]
pub struct Process {
    /// Which run of all runs this is: later ones have larger numbers.
    pub run: u64,
    /// In the world's time.
    pub started: Duration,
    /// Threshold state.
    pub health: HealthState,
    /// Who speaks.
    pub speaker: Speaker,
    /// The probe in force.
    pub probe: Option<ProbePlan>,
    /// When it probes next, in the world's time.
    pub next_probe: Option<Duration>,
    /// Its stream, and perhaps the attempt at one.
    pub stream: Option<StreamId>,
    /// Its first stream.
    pub first_stream: Option<StreamId>,
    since: Duration,
    last_probe: Option<Duration>,
}

/// Ours or Istio's.
#[derive(Debug)]
pub enum Speaker {
    /// Our agent's.
    Ours(Box<Reporter>),
    /// Everybody else's.
    Plain(Plain),
}

impl Process {
    /// A run that begins at `now`, in the world's time.
    pub fn new(plan: &MachinePlan, run: u64, now: Duration) -> Self {
        let probe = plan.file;
        let health = HealthState::new(probe.map(thresholds));
        let mut process = Self {
            run,
            started: now,
            health,
            speaker: Speaker::Plain(Plain::new()),
            probe,
            next_probe: probe.map(|probe| now + Duration::from_secs(probe.initial_delay)),
            stream: None,
            first_stream: None,
            since: Duration::ZERO,
            last_probe: None,
        };
        if plan.kind == Kind::Ours {
            let settings = ReporterSettings {
                epoch: epoch(run),
                heartbeat: Duration::from_secs(60),
                istio_heartbeat: Some(Duration::from_secs(300)),
                final_report_timeout: Duration::from_secs(2),
            };
            process.speaker = Speaker::Ours(Box::new(Reporter::new(settings, process.level())));
        }
        process
    }

    /// What the reporter is told; times are since the start of this run.
    pub fn level(&self) -> HealthStatus {
        let health = &self.health;
        let seconds = Duration::from_secs;
        let is_awaiting = health.generation() == 0;
        HealthStatus {
            generation: health.generation(),
            state: health.state(),
            reason: health.reason(),
            message: health.message().to_owned(),
            since: self.since,
            last_probe: self.last_probe,
            interval: self.probe.map(|probe| seconds(probe.period + probe.timeout)),
            verdict_due: self.probe.filter(|_| is_awaiting).map(|probe| {
                let probes = u64::from(probe.failure.max(probe.success)) * (probe.period + probe.timeout);
                seconds(probe.initial_delay + probes)
            }),
        }
    }

    /// A probe came to its end, at `now` of the world.
    pub fn probed(&mut self, now: Duration, outcome: workload_health::Outcome) {
        let flip = self.health.observe(outcome);
        self.last_probe = Some(now - self.started);
        self.next_probe = self.probe.map(|probe| now + Duration::from_secs(probe.period));
        if flip.is_some() {
            self.since = now - self.started;
        }
    }

    /// The state changed otherwise.
    pub fn flipped(&mut self, now: Duration) {
        self.since = now - self.started;
    }

    /// The server pushed a probe; one that is in force changes nothing.
    pub fn pushed(&mut self, now: Duration, pushed: Option<&WorkloadProbe>) {
        let pushed = pushed.map(|probe| ProbePlan {
            success: probe.thresholds.success.get(),
            failure: probe.thresholds.failure.get(),
            period: probe.period.as_secs(),
            timeout: probe.timeout.as_secs(),
            initial_delay: probe.initial_delay.as_secs(),
        });
        if pushed == self.probe {
            return;
        }
        self.probe = pushed;
        self.next_probe =
            pushed.map(|probe| now.max(self.started + Duration::from_secs(probe.initial_delay)));
        if self.health.set_probe(pushed.map(thresholds)).is_some() {
            self.flipped(now);
        }
    }

    /// When its speaker wants to be asked, in the world's time.
    pub fn next_due(&self) -> Option<Duration> {
        let due = match &self.speaker {
            Speaker::Ours(reporter) => reporter.next_due(),
            Speaker::Plain(plain) => plain.next_due(),
        };
        due.map(|due| self.started + due)
    }

    /// One input for its speaker.
    pub fn step(&mut self, now: Duration, input: Input, random: &mut dyn FnMut() -> f64) -> Vec<Effect> {
        let now = now - self.started;
        match &mut self.speaker {
            Speaker::Ours(reporter) => reporter.step(now, input, random),
            Speaker::Plain(plain) => plain.step(now, input, random),
        }
    }
}

/// The epoch of a run.
pub fn epoch(run: u64) -> String {
    format!("{run:032x}")
}

/// The run of an epoch.
pub fn run_of(epoch: &str) -> Option<u64> {
    u64::from_str_radix(epoch, 16).ok()
}

fn thresholds(probe: ProbePlan) -> Thresholds {
    let number = |number: u32| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
    Thresholds { success: number(probe.success), failure: number(probe.failure) }
}
