//! One run of an agent: its probe, its state, and its stream. A new run has a new epoch and no
//! earlier state.

use std::num::NonZeroU32;
use std::time::Duration;

use discovery::entries::StreamId;
use workload_health::reporter::{HealthStatus, Reporter, ReporterSettings};
use workload_health::{HealthState, Thresholds, WorkloadProbe};
use xds::Variant;
use xds_proxy::{Effect, Input, Proxy, ProxySettings};

use super::istio_agent::IstioAgent;
use super::plan::{Kind, MachinePlan, ProbePlan};

#[derive(Debug)]
pub struct Process {
    /// The number of the run; later runs have larger numbers.
    pub run: u64,
    /// When it started, in simulated time.
    pub started: Duration,
    /// The state of the thresholds.
    pub health: HealthState,
    pub client: AgentClient,
    /// The probe in use.
    pub probe: Option<ProbePlan>,
    /// When the next probe runs, in simulated time.
    pub next_probe: Option<Duration>,
    /// The current stream, which may still be connecting.
    pub stream: Option<StreamId>,
    /// The first stream of this run.
    pub first_stream: Option<StreamId>,
    since: Duration,
    last_probe: Option<Duration>,
}

/// What opens streams and reports the health of a run.
#[derive(Debug)]
pub enum AgentClient {
    /// That of this project's agent, without an Envoy.
    AppHealth(Box<Proxy>),
    /// That of any other client.
    Istio(IstioAgent),
}

impl Process {
    /// Starts a run at `now`, in simulated time.
    pub fn new(plan: &MachinePlan, run: u64, now: Duration) -> Self {
        let probe = plan.file;
        let health = HealthState::new(probe.map(thresholds));
        let mut process = Self {
            run,
            started: now,
            health,
            client: AgentClient::Istio(IstioAgent::new()),
            probe,
            next_probe: probe.map(|probe| now + Duration::from_secs(probe.initial_delay)),
            stream: None,
            first_stream: None,
            since: Duration::ZERO,
            last_probe: None,
        };
        if plan.kind == Kind::AppHealth {
            let settings = ReporterSettings {
                epoch: epoch(run),
                heartbeat: Duration::from_secs(60),
                istio_heartbeat: Some(Duration::from_secs(300)),
                final_report_timeout: Duration::from_secs(2),
            };
            let reporter = Reporter::new(settings, process.level());
            let settings = ProxySettings {
                identity: "machine".to_owned(),
                max_age: None,
                variant: Variant::Sotw,
                serves_envoy: false,
                own_types: Vec::new(),
                refuses_remote_wasm: false,
            };
            process.client = AgentClient::AppHealth(Box::new(Proxy::new(settings, reporter, None)));
        }
        process
    }

    /// Returns the state for the reporter; times count from the start of this run.
    pub fn level(&self) -> HealthStatus {
        let verdict = self.health.verdict();
        let seconds = Duration::from_secs;
        let is_awaiting = verdict.generation == 0;
        HealthStatus {
            verdict: verdict.clone(),
            since: self.since,
            last_probe: self.last_probe,
            interval: self.probe.map(|probe| seconds(probe.period + probe.timeout)),
            verdict_due: self.probe.filter(|_| is_awaiting).map(|probe| {
                let probes = u64::from(probe.failure.max(probe.success)) * (probe.period + probe.timeout);
                seconds(probe.initial_delay + probes)
            }),
        }
    }

    /// Processes the result of a probe, at simulated time `now`.
    pub fn probed(&mut self, now: Duration, outcome: workload_health::Outcome) {
        let flip = self.health.observe(outcome);
        self.last_probe = Some(now - self.started);
        self.next_probe = self.probe.map(|probe| now + Duration::from_secs(probe.period));
        if flip.is_some() {
            self.since = now - self.started;
        }
    }

    /// Processes any other change of the state.
    pub fn flipped(&mut self, now: Duration) {
        self.since = now - self.started;
    }

    /// Processes a pushed probe; one that is already in use changes nothing.
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

    /// Returns when the client is due, in simulated time.
    pub fn next_due(&self) -> Option<Duration> {
        let due = match &self.client {
            AgentClient::AppHealth(proxy) => proxy.next_due(),
            AgentClient::Istio(plain) => plain.next_due(),
        };
        due.map(|due| self.started + due)
    }

    /// Passes one input to the client.
    pub fn step(&mut self, now: Duration, input: Input, random: &mut dyn FnMut() -> f64) -> Vec<Effect> {
        let now = now - self.started;
        match &mut self.client {
            AgentClient::AppHealth(proxy) => proxy.step(now, input, random),
            AgentClient::Istio(plain) => plain.step(now, input, random),
        }
    }
}

pub fn epoch(run: u64) -> String {
    format!("{run:032x}")
}

pub fn run_of(epoch: &str) -> Option<u64> {
    u64::from_str_radix(epoch, 16).ok()
}

fn thresholds(probe: ProbePlan) -> Thresholds {
    let number = |number: u32| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
    Thresholds { success: number(probe.success), failure: number(probe.failure) }
}
