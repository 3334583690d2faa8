//! The plan that a seed generates: the machines, all latencies, and the times of the faults. A plan
//! can be run without some of its faults, which minimizes failures.

mod bulk;
mod faults;
mod replicas;

use std::time::Duration;

use discovery::entries::{Settings, UnknownPolicy};
use discovery::message::Variant;
use discovery::objects::LastEndpoint;

use super::random::Random;

pub use faults::{BulkEnd, Edit, Fault};

/// The groups of every plan.
pub const GROUPS: [&str; 2] = ["payments", "orders"];

#[derive(Debug, Clone)]
pub struct Plan {
    /// The seed of the plan, from which random choices during the run are drawn too.
    pub seed: u64,
    /// Settings of the servers.
    pub settings: Settings,
    /// The number of servers; more than one share the store of an API server.
    pub replicas: usize,
    /// Whether the only faults are restarts and stops of many agents at once, so that their effect on the
    /// endpoints can be checked.
    pub is_bulk: bool,
    /// The policy for a service's last endpoint.
    pub last_endpoint: LastEndpoint,
    /// Machines, the Envoys beside agents, hostile peers.
    pub machines: Vec<MachinePlan>,
    /// The initial probes of [`GROUPS`].
    pub groups: Vec<Option<ProbePlan>>,
    /// The variant of each Envoy, and whether it sometimes rejects responses.
    pub envoys: Vec<(Variant, bool)>,
    /// Bounds of the one-way network latency, in milliseconds.
    pub latency: (u64, u64),
    /// Bounds of the time until a write is durable, and until that is reported, in milliseconds.
    pub disk: (u64, u64),
    /// The faults, sorted by time.
    pub faults: Vec<(Duration, Fault)>,
    /// No fault occurs after this time.
    pub until: Duration,
    /// Limit for the world to reach its final state after that.
    pub rest: Duration,
}

/// The fields of a probe that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbePlan {
    /// The `successThreshold`.
    pub success: u32,
    /// The `failureThreshold`.
    pub failure: u32,
    /// The `periodSeconds`, from start to start.
    pub period: u64,
    /// The `timeoutSeconds`.
    pub timeout: u64,
    /// The `initialDelaySeconds`.
    pub initial_delay: u64,
}

/// A client that opens streams.
#[derive(Debug, Clone)]
pub struct MachinePlan {
    pub kind: Kind,
    /// The index of the machine on which it runs: its own, or that of its companion.
    pub host: usize,
    /// The index in [`GROUPS`] of the group that it registers with; absent: it has a manual entry.
    pub group: Option<usize>,
    /// The probe in its own file; absent: the one that the server pushes.
    pub file: Option<ProbePlan>,
    /// Whether the application is initially healthy.
    pub healthy: bool,
    pub starts: Duration,
}

/// The kinds of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// This project's agent.
    AppHealth,
    /// Istio's agent, which reports only changes.
    Istio,
    /// The Envoy beside an agent: a stream of the same workload that reports nothing.
    Companion,
    /// Repeats earlier reports of a machine, on a new stream.
    Hostile,
}

impl Plan {
    /// Generates the plan of a seed, with several replicas of discovery only if they are wanted.
    pub fn new(seed: u64, has_replicas: bool) -> Self {
        // A second generator, so that a seed without these additions keeps its plan.
        let mut random = Random::new(seed ^ 0xb01c);
        let mut plan = if random.chance(0.05) { bulk::plan(seed) } else { Self::general(seed) };
        if random.chance(if plan.is_bulk { 0.3 } else { 0.1 }) && has_replicas {
            replicas::add(&mut plan, &mut random);
        }
        if !plan.is_bulk && random.chance(0.2) {
            bulk::add(&mut plan, &mut random);
        }
        plan
    }

    fn general(seed: u64) -> Self {
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
        Self {
            seed,
            settings,
            replicas: 1,
            is_bulk: false,
            last_endpoint,
            machines,
            envoys,
            groups,
            latency,
            disk,
            faults,
            until,
            rest,
        }
    }
}

impl Plan {
    /// Returns the host of a machine, or of an Envoy, which are numbered after the machines.
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
    let kind = if random.chance(0.25) { Kind::Istio } else { Kind::AppHealth };
    // The server pushes no probe to an Istio agent, or for a manual entry.
    let has_file = kind == Kind::Istio || group.is_none() || random.chance(0.5);
    MachinePlan {
        kind,
        host,
        group,
        file: has_file.then(|| probe(random)),
        healthy: random.chance(0.7),
        starts: random.millis(0, 20_000),
    }
}

pub fn probe(random: &mut Random) -> ProbePlan {
    ProbePlan {
        success: random.pick(&[1, 1, 2]),
        failure: random.pick(&[1, 2, 3]),
        period: random.pick(&[1, 5, 10]),
        timeout: 1,
        initial_delay: random.pick(&[0, 0, 5]),
    }
}
