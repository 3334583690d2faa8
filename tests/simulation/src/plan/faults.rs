//! The faults of a plan.

use std::time::Duration;

use super::{GROUPS, Kind, MachinePlan, ProbePlan, probe};
use crate::random::Random;

/// A failure or a change of the configuration.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// The application becomes healthy or unhealthy.
    Application { host: usize, healthy: bool },
    /// Each probe gets a random result, until the next [`Fault::Application`].
    Flapping { host: usize },
    /// The connection breaks and packets in flight are lost. Both ends detect it soon.
    Cut { machine: usize },
    /// The connection loses all packets in one direction or both, until an unanswered PING reveals
    /// it.
    HalfOpen { machine: usize, up: bool, down: bool },
    /// The host and the server cannot reach each other for this time.
    Partition { host: usize, lasts: Duration },
    /// The process ends at once, as by `kill -9`; with `silently` the whole machine does, so that
    /// its connections are not closed.
    Kill { machine: usize, silently: bool },
    /// The agent shuts down cleanly, with a final report.
    Stop { machine: usize },
    /// The agent reports that it drains and continues to run.
    Drain { machine: usize },
    /// The agent starts if it is not running.
    Start { machine: usize },
    /// The host does nothing for this time, like a suspended machine.
    Freeze { host: usize, lasts: Duration },
    /// A server ends at once and restarts later; with `empty` its store is lost.
    Restart { replica: usize, down: Duration, empty: bool, silently: bool },
    /// A server shuts down cleanly and is replaced by one with another name.
    Replace { replica: usize, down: Duration },
    /// A server cannot reach the API server for this time.
    Isolate { replica: usize, lasts: Duration },
    /// The agents of a group end within a second.
    Together { group: usize, end: BulkEnd },
    /// The store accepts no writes for this time.
    DiskFull { lasts: Duration },
    /// The server's wall clock jumps by this number of seconds.
    WallClock { seconds: i64 },
    /// The operator changes the configuration.
    Configure(Edit),
    /// An earlier report of the machine is delivered again on its current stream.
    Replay { machine: usize },
    /// The certificates of the agent are replaced, so that it opens a new stream.
    Certificates { machine: usize },
}

/// How many agents end at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkEnd {
    /// By SIGUSR2, without a final report; they start again after this time.
    Restart(Duration),
    /// By SIGTERM; they start again after this time.
    StopAndStart(Duration),
    /// By SIGTERM, for good.
    Stop,
}

/// A change of the configuration.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit {
    /// Sets or removes the probe of a group.
    Probe { group: usize, probe: Option<ProbePlan> },
    /// Creates or deletes a group.
    Group { group: usize, exists: bool },
    /// Creates or deletes the manual entry of a host.
    Entry { host: usize, exists: bool },
}

/// Generates faults up to `until`, followed by those that restore a healthy world.
pub(super) fn make(
    random: &mut Random,
    machines: &[MachinePlan],
    envoys: usize,
    until: Duration,
) -> Vec<(Duration, Fault)> {
    let most = random.pick(&[0, 3, 10, 30]);
    let mut faults: Vec<(Duration, Fault)> = Vec::new();
    let span = u64::try_from(until.as_millis()).expect("minutes");
    // Some plans repeat one kind of fault.
    let favourite = random.chance(0.3).then(|| random.below(KINDS));
    for _ in 0..random.below(most + 1) {
        let at = random.millis(0, span);
        let which = match favourite {
            Some(favourite) if random.chance(0.6) => favourite,
            _ => random.below(KINDS),
        };
        let fault = one(random, which, machines, envoys, (until - at) + Duration::from_millis(1));
        faults.push((at, fault));
    }
    // A clean shutdown needs time to complete.
    let quiet = until + Duration::from_secs(5);
    for (index, machine) in machines.iter().enumerate() {
        faults.push((machine.starts.min(until), Fault::Start { machine: index }));
        match machine.kind {
            Kind::Hostile => faults.push((quiet, Fault::Kill { machine: index, silently: false })),
            _ if random.chance(0.8) => faults.push((quiet, Fault::Start { machine: index })),
            _ => {}
        }
        if machine.host == index {
            let healthy = random.chance(0.6);
            faults.push((until, Fault::Application { host: index, healthy }));
        }
    }
    // A rejected response is not sent again until it changes, so the Envoys are restarted.
    for envoy in 0..envoys {
        faults.push((until, Fault::Kill { machine: machines.len() + envoy, silently: false }));
    }
    for group in 0..GROUPS.len() {
        if random.chance(0.9) {
            faults.push((until, Fault::Configure(Edit::Group { group, exists: true })));
        }
    }
    faults.sort_by_key(|(at, _)| *at);
    faults
}

/// The number of kinds that [`one`] can generate.
const KINDS: usize = 19;

/// Generates one fault that ends before `left` has passed.
fn one(random: &mut Random, which: usize, machines: &[MachinePlan], envoys: usize, left: Duration) -> Fault {
    // The Envoys are numbered after the machines.
    let machine = random.below(machines.len() + envoys);
    let host = machines.get(machine).map_or(machine, |machine| machine.host);
    let lasts = random.pick(&[500, 5_000, 15_000, 40_000, 120_000]);
    let lasts = Duration::from_millis(random.number() % lasts).min(left);
    let group = random.below(GROUPS.len());
    let silently = random.chance(0.4);
    match which {
        0..=2 => Fault::Application { host, healthy: random.chance(0.5) },
        3 => Fault::Flapping { host },
        4..=5 => Fault::Cut { machine },
        6 => {
            let up = random.chance(0.7);
            Fault::HalfOpen { machine, up, down: !up || random.chance(0.6) }
        }
        7 => Fault::Partition { host, lasts },
        8 => Fault::Kill { machine, silently },
        9 => Fault::Stop { machine },
        10 => Fault::Drain { machine },
        11..=12 => Fault::Start { machine },
        13 => Fault::Freeze { host, lasts },
        14 => {
            let down = Duration::from_millis(random.number() % 20_000).min(left);
            Fault::Restart { replica: 0, down, empty: random.chance(0.25), silently }
        }
        15 => Fault::DiskFull { lasts },
        16 => Fault::WallClock { seconds: random.pick(&[-3600, -1, 1, 86_400]) },
        17 if random.chance(0.5) => Fault::Configure(match random.below(3) {
            0 => Edit::Probe { group, probe: random.chance(0.7).then(|| probe(random)) },
            1 => Edit::Group { group, exists: random.chance(0.5) },
            _ => Edit::Entry { host, exists: random.chance(0.5) },
        }),
        17 => Fault::Certificates { machine },
        _ => Fault::Replay { machine },
    }
}
