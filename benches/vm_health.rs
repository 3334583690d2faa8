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
#[path = "vm_health/restarts.rs"]
mod restarts;
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
use kit::quiet_rounds::QuietRounds;
use kit::report::{self, Row};
use kit::vm::fleet::{LoadSize, LoadTest};

use crate::arguments::{Arguments, Part};

/// An error of the measurement itself.
type Failure = Box<dyn Error + Send + Sync>;

/// Initial rate of new simulated agents, per second.
const ARRIVALS: u32 = 300;

const NOTES: &str = "\
all components as shipped, on loopback, over mutual TLS; the load generator runs on the same machine as the server
flips: from the application's response to the probe that reaches the threshold, to the first response of Envoy's /clusters, polled
  every millisecond, that shows it; real agents, one probe per second, each with a different phase
departures: observed in the same subscription; silent: iptables drops every packet of the connection, in a separate network namespace
load: each simulated agent has the real reporter and messages, and a connection from a separate address, all in one process;
  one EDS client receives the endpoints, and must not lose any while the server is down
CPU time: of the whole process, by its CPU clock; of the load generator: what it used of the same machine";

fn main() -> Result<(), Failure> {
    tls::install_provider();
    let arguments = Arguments::parse();
    let mut quiet = QuietRounds::default();
    let mut rows = measure(&arguments, &mut quiet)?;
    rows.extend(quiet.rows());
    let file = report::write(&workspace().join("target"), "vm-health", &rows)?;
    let table = report::table(&rows);
    writeln!(std::io::stdout(), "{table}\n\n{NOTES}\n{}\n{}", quiet.summary(), file.display())?;
    Ok(())
}

fn measure(arguments: &Arguments, quiet: &mut QuietRounds) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    let span = Duration::from_secs(arguments.seconds);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        if arguments.wants(Part::Departures) {
            rows.extend(quiet.round(async || departures::measure()).await?);
        }
        if arguments.wants(Part::Restarts) {
            rows.extend(restarts::measure().await?);
        }
        if arguments.wants(Part::Flips) {
            rows.extend(flips::measure(quiet, arguments.flips).await?);
        }
        if arguments.wants(Part::Agent) {
            rows.extend(quiet.round(async || agent::measure(span).await).await?);
        }
        if Part::LOAD.iter().any(|part| arguments.wants(*part)) {
            rows.extend(measure_load(arguments, quiet).await?);
        }
        if arguments.wants(Part::Reports) {
            rows.extend(quiet.once(async || reports::measure(arguments).await).await?);
        }
        Ok::<_, Failure>(())
    })?;
    Ok(rows)
}

/// Runs every part that uses the same simulated agents. `cold` comes last because it stops them.
async fn measure_load(arguments: &Arguments, quiet: &mut QuietRounds) -> Result<Vec<Row>, Failure> {
    let mut load = load(arguments, "b-load", steady::HEARTBEAT).await?;
    let mut rows = Vec::new();
    if arguments.wants(Part::Steady) {
        let span = Duration::from_secs(arguments.seconds);
        rows.extend(quiet.round(async || steady::measure(&load, span).await).await?);
    }
    if arguments.wants(Part::Flapping) {
        let span = Duration::from_secs(arguments.flapping);
        rows.extend(quiet.round(async || flapping::measure(&load, span).await).await?);
    }
    if arguments.wants(Part::Storm) {
        for outage in [0, arguments.outage] {
            let outage = Duration::from_secs(outage);
            rows.extend(quiet.once(async || storm::measure(&mut load, outage).await).await?);
        }
    }
    if arguments.wants(Part::Cold) {
        rows.extend(cold::measure(quiet, load).await?);
    }
    Ok(rows)
}

async fn load(arguments: &Arguments, name: &str, heartbeat: Duration) -> Result<LoadTest, Failure> {
    let Arguments { agents, services, .. } = *arguments;
    say(&format!("{agents} agents register"));
    Ok(LoadTest::start(name, LoadSize { agents, services, arrivals: ARRIVALS, heartbeat }).await?)
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Prints progress to standard error, because a run takes minutes.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
