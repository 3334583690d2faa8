//! Benchmark of the health of virtual machines: the time from an agent's verdict until Envoy has
//! it, machines that stop in every way, and many agents that report, flap and reconnect at the same
//! time. It prints a table and writes `target/bench/vm-health.json`. A missed target is reported
//! and is not an error; a measurement that fails is an error.

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

/// An error of the measurement itself.
type Failure = Box<dyn Error + Send + Sync>;

/// Initial rate of new simulated agents, per second.
const ARRIVALS: u32 = 300;

const NOTES: &str = "\
all components as shipped, on loopback, over mutual TLS; the load generator runs on the same machine as the server
flips: from the application's response to the probe that reaches the threshold, to the first response of Envoy's /clusters, polled
  every millisecond, that shows it; real agents, one probe per second, each with a different phase
departures: observed in the same way; silent: iptables drops every packet of the connection, in a separate network namespace
crowd: each simulated agent has the real reporter and messages, and a connection from a separate address, all in one process;
  one EDS client receives the endpoints, and must not lose any while the server is down
CPU time: of the whole process, by its CPU clock; of the load generator: what it used of the same machine";

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

/// Runs every part that uses the same simulated agents. `cold` comes last because it stops them.
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

/// Prints progress to standard error, because a run takes minutes.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
