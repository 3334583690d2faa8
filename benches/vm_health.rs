//! What health of virtual machines costs, and how soon it takes effect: an agent's verdict until Envoy has it, machines that die in
//! every way, and a crowd of agents that report, flap, and come back all at once. Prints a table and writes
//! `target/bench/vm-health.json`. A bar that does not hold is reported and is no error; not to be able to measure is one.

#[path = "vm_health/agent.rs"]
mod agent;
#[path = "vm_health/arguments.rs"]
mod arguments;
#[path = "vm_health/cold.rs"]
mod cold;
#[path = "vm_health/departures.rs"]
mod departures;
#[path = "vm_health/flapping.rs"]
mod flapping;
#[path = "vm_health/flips.rs"]
mod flips;
#[path = "vm_health/reports.rs"]
mod reports;
#[path = "vm_health/steady.rs"]
mod steady;
#[path = "vm_health/storm.rs"]
mod storm;

use std::error::Error;
use std::io::Write as _;
use std::time::Duration;

use clap::Parser as _;
use kit::app::tls;
use kit::envoy::workspace;
use kit::report::{self, Row};
use kit::vm::fleet::{Crowd, Size};

use crate::arguments::{Arguments, Part};

/// Not to be able to measure.
type Failure = Box<dyn Error + Send + Sync>;

/// New agents of the crowd a second, at first.
const ARRIVALS: u32 = 300;

const NOTES: &str = "\
all as it is shipped, on loopback, over mutual TLS; the load shares the machine with the server
flips: from the application's answer to the probe that reaches the threshold to the first answer of Envoy's /clusters, asked
  every millisecond, that shows it; real agents, one probe a second, each with a phase of its own
departures: seen in the same way; silent: iptables drops every packet of the connection, in a network namespace of our own
crowd: each agent is the agent's own reporter and messages on a connection of its own, from an address of its own, in one process;
  its endpoints are read by one client of EDS, which must never lose one while the server is away
processor time: of the whole process, by its clock; of the load: what measuring took of the same machine";

fn main() -> Result<(), Failure> {
    tls::install_provider();
    let arguments = Arguments::parse();
    let rows = measure(&arguments)?;
    let file = report::write(&workspace().join("target"), "vm-health", &rows)?;
    writeln!(std::io::stdout(), "{}\n\n{NOTES}\n{}", report::table(&rows), file.display())?;
    Ok(())
}

fn measure(arguments: &Arguments) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    if arguments.wants(Part::Departures) {
        rows.extend(departures::measure()?);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        if arguments.wants(Part::Flips) {
            rows.extend(flips::measure(arguments.flips).await?);
        }
        if arguments.wants(Part::Agent) {
            rows.extend(agent::measure(Duration::from_secs(arguments.seconds)).await?);
        }
        if Part::CROWD.iter().any(|part| arguments.wants(*part)) {
            rows.extend(measure_crowd(arguments).await?);
        }
        if arguments.wants(Part::Reports) {
            rows.extend(reports::measure(arguments).await?);
        }
        Ok::<_, Failure>(())
    })?;
    Ok(rows)
}

/// All that one crowd is good for; `cold` is the last, since it ends it.
async fn measure_crowd(arguments: &Arguments) -> Result<Vec<Row>, Failure> {
    let mut crowd = crowd(arguments, "b-crowd", steady::HEARTBEAT).await?;
    let mut rows = Vec::new();
    if arguments.wants(Part::Steady) {
        rows.extend(steady::measure(&crowd, Duration::from_secs(arguments.seconds)).await?);
    }
    if arguments.wants(Part::Flapping) {
        rows.extend(flapping::measure(&crowd, Duration::from_secs(arguments.flapping)).await?);
    }
    if arguments.wants(Part::Storm) {
        for outage in [0, arguments.outage] {
            rows.extend(storm::measure(&mut crowd, Duration::from_secs(outage)).await?);
        }
    }
    if arguments.wants(Part::Cold) {
        rows.extend(cold::measure(crowd).await?);
    }
    Ok(rows)
}

async fn crowd(arguments: &Arguments, name: &str, heartbeat: Duration) -> Result<Crowd, Failure> {
    let Arguments { agents, services, .. } = *arguments;
    say(&format!("{agents} agents register"));
    Ok(Crowd::start(name, Size { agents, services, arrivals: ARRIVALS, heartbeat }).await?)
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Says what is going on; a run takes minutes.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
