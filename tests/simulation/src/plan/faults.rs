//! PURE. The faults of a plan.

use std::time::Duration;

use super::{GROUPS, Kind, MachinePlan, ProbePlan, probe};
use crate::random::Random;

/// Something that goes wrong, or is changed by somebody.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// The application is well, or not, from now on.
    Application { host: usize, healthy: bool },
    /// From now on each probe ends as it likes; [`Fault::Application`] ends that.
    Flapping { host: usize },
    /// Its connection breaks; what was on the way is lost. Both ends hear of it soon.
    Cut { machine: usize },
    /// Its connection dies and nobody hears of it until a ping is not answered. In one direction or both.
    HalfOpen { machine: usize, up: bool, down: bool },
    /// Nothing passes between the host and the server for so long.
    Partition { host: usize, lasts: Duration },
    /// Ends at once, as by `kill -9`; `silently`: the whole machine, so that nobody closes its connections.
    Kill { machine: usize, silently: bool },
    /// Ends with a goodbye.
    Stop { machine: usize },
    /// Says that it drains, and goes on.
    Drain { machine: usize },
    /// Starts again, if it does not run.
    Start { machine: usize },
    /// Does nothing for so long, as a suspended machine.
    Freeze { host: usize, lasts: Duration },
    /// The server ends at once and starts again later. `empty`: with nothing of what it had stored.
    Restart { down: Duration, empty: bool, silently: bool },
    /// Nothing is stored for so long.
    DiskFull { lasts: Duration },
    /// The server's wall clock jumps by so many seconds.
    WallClock { seconds: i64 },
    /// Somebody edits the configuration.
    Configure(Edit),
    /// Something that the machine said once is delivered again, on its stream of now.
    Replay { machine: usize },
    /// Other certificates: it opens a new stream.
    Certificates { machine: usize },
}

/// A change of the configuration.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit {
    /// A group has this probe from now on, or none.
    Probe { group: usize, probe: Option<ProbePlan> },
    /// A group is there, or not.
    Group { group: usize, exists: bool },
    /// The manual entry of a host is there, or not.
    Entry { host: usize, exists: bool },
}

/// Faults up to `until`, after which the world is as it should be.
pub(super) fn make(
    random: &mut Random,
    machines: &[MachinePlan],
    envoys: usize,
    until: Duration,
) -> Vec<(Duration, Fault)> {
    let most = random.pick(&[0, 3, 10, 30]);
    let mut faults: Vec<(Duration, Fault)> = Vec::new();
    let span = u64::try_from(until.as_millis()).expect("minutes");
    // Some plans have a favourite, which comes again and again.
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
    // A goodbye must have its time.
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
    // What was refused is not sent again until it changes.
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

/// How many kinds [`one`] knows.
const KINDS: usize = 19;

/// One fault that is over before `left` has passed.
fn one(random: &mut Random, which: usize, machines: &[MachinePlan], envoys: usize, left: Duration) -> Fault {
    // Behind the machines come the Envoys.
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
            Fault::Restart { down, empty: random.chance(0.25), silently }
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
