//! PURE. What a seed makes: who is there, how slow everything is, and which faults come when. A plan can be run without some of its
//! faults, which makes failures small.

mod faults;

use std::time::Duration;

use discovery::entries::{Settings, UnknownPolicy};
use discovery::message::Variant;
use discovery::objects::LastEndpoint;

use super::random::Random;

pub use faults::{Edit, Fault};

/// The groups of every plan.
pub const GROUPS: [&str; 2] = ["payments", "orders"];

/// A case.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Made from it; what happens on the way is drawn from it too.
    pub seed: u64,
    /// Of the server.
    pub settings: Settings,
    /// What becomes of a service's last endpoint.
    pub last_endpoint: LastEndpoint,
    /// Machines, the Envoys beside agents, hostile peers.
    pub machines: Vec<MachinePlan>,
    /// The groups' probes at the start: [`GROUPS`].
    pub groups: Vec<Option<ProbePlan>>,
    /// Envoys: how they ask, and whether they now and then refuse what they get.
    pub envoys: Vec<(Variant, bool)>,
    /// One way through the network, in milliseconds.
    pub latency: (u64, u64),
    /// Until something written is durable, and until that is known, in milliseconds.
    pub disk: (u64, u64),
    /// In the order of time.
    pub faults: Vec<(Duration, Fault)>,
    /// No fault after this.
    pub until: Duration,
    /// How long everything may take to come to rest after that.
    pub rest: Duration,
}

/// A probe, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbePlan {
    /// Successes in a row.
    pub success: u32,
    /// Failures in a row.
    pub failure: u32,
    /// Seconds from start to start.
    pub period: u64,
    /// Seconds.
    pub timeout: u64,
    /// Seconds.
    pub initial_delay: u64,
}

/// Somebody who opens streams.
#[derive(Debug, Clone)]
pub struct MachinePlan {
    /// Who.
    pub kind: Kind,
    /// Index of the machine that this runs on: its own, or that of its companion.
    pub host: usize,
    /// Which of [`GROUPS`] it registers with; absent: it has a manual entry.
    pub group: Option<usize>,
    /// Its own probe; absent: whatever the server pushes.
    pub file: Option<ProbePlan>,
    /// Whether the application is well in the beginning.
    pub healthy: bool,
    /// When it starts.
    pub starts: Duration,
}

/// The kinds of peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Our agent.
    Ours,
    /// Istio's: a plain reporter, which speaks only on change.
    Plain,
    /// The Envoy beside an agent: a stream of the same workload that reports nothing.
    Companion,
    /// Says again, as a new stream of ours, what a machine once said.
    Hostile,
}

impl Plan {
    /// The plan of a seed.
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let settings = settings(&mut random);
        let mut machines = Vec::new();
        for host in 0..1 + random.below(4) {
            machines.push(machine(&mut random, host));
        }
        let hosts = machines.len();
        for host in 0..hosts {
            if random.chance(0.3) {
                machines.push(MachinePlan { kind: Kind::Companion, file: None, ..machines[host].clone() });
            }
        }
        if random.chance(0.25) {
            let of = random.below(hosts);
            machines.push(MachinePlan { kind: Kind::Hostile, file: None, ..machines[of].clone() });
        }
        let envoys: Vec<(Variant, bool)> = (0..1 + random.below(2))
            .map(|_| (random.pick(&[Variant::Sotw, Variant::Delta]), random.chance(0.1)))
            .collect();
        let groups = GROUPS.iter().map(|_| random.chance(0.8).then(|| probe(&mut random))).collect();
        let until = Duration::from_secs(60 + random.number() % 300);
        let latency = random.pick(&[(0, 2), (1, 50), (1, 500), (5, 3000)]);
        let disk = random.pick(&[(0, 20), (1, 20), (10, 500), (1, 3000)]);
        let rest = settings.restart_grace + settings.heartbeat.mul_f64(3.6) + Duration::from_secs(240);
        let last_endpoint = if random.chance(0.2) { LastEndpoint::Keep } else { LastEndpoint::Remove };
        let faults = faults::make(&mut random, &machines, envoys.len(), until);
        Self { seed, settings, last_endpoint, machines, envoys, groups, latency, disk, faults, until, rest }
    }
}

impl Plan {
    /// Where a machine runs, or behind those an Envoy.
    pub fn host(&self, index: usize) -> usize {
        self.machines.get(index).map_or(index, |machine| machine.host)
    }
}

fn settings(random: &mut Random) -> Settings {
    let seconds = |random: &mut Random, choices: &[u64]| Duration::from_secs(random.pick(choices));
    Settings {
        heartbeat: seconds(random, &[5, 10, 60]),
        disconnect_grace: seconds(random, &[2, 10, 10]),
        restart_grace: seconds(random, &[5, 30, 120]),
        unknown_policy: if random.chance(0.3) { UnknownPolicy::Keep } else { UnknownPolicy::Remove },
        report_interval: Duration::from_millis(random.pick(&[0, 500])),
        ..Settings::default()
    }
}

fn machine(random: &mut Random, host: usize) -> MachinePlan {
    let group = random.chance(0.8).then(|| random.below(GROUPS.len()));
    let kind = if random.chance(0.25) { Kind::Plain } else { Kind::Ours };
    // Nobody pushes a probe to a plain agent, or for a manual entry.
    let has_file = kind == Kind::Plain || group.is_none() || random.chance(0.5);
    MachinePlan {
        kind,
        host,
        group,
        file: has_file.then(|| probe(random)),
        healthy: random.chance(0.7),
        starts: random.millis(0, 20_000),
    }
}

/// Some probe.
pub fn probe(random: &mut Random) -> ProbePlan {
    ProbePlan {
        success: random.pick(&[1, 1, 2]),
        failure: random.pick(&[1, 2, 3]),
        period: random.pick(&[1, 5, 10]),
        timeout: 1,
        initial_delay: random.pick(&[0, 0, 5]),
    }
}
