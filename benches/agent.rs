//! Benchmark of the agent beside an Envoy: memory, CPU time, latency of readiness requests
//! while the admin port misbehaves, reaction to the death of Envoy, and the command `wait`. It
//! prints a table and writes `target/bench/agent.json`. A missed target is reported and is not an
//! error; a measurement that fails is an error.

#[path = "agent/admin.rs"]
mod admin;
#[path = "agent/arguments.rs"]
mod arguments;
#[path = "probe/caller.rs"]
mod caller;
#[path = "agent/death.rs"]
mod death;
#[path = "agent/idle.rs"]
mod idle;
#[path = "agent/memory.rs"]
mod memory;
#[path = "agent/scrape.rs"]
mod scrape;
#[path = "agent/startup.rs"]
mod startup;
#[path = "agent/wait.rs"]
mod wait;

use std::io::Write as _;
use std::time::Duration;

use clap::Parser as _;
use kit::envoy::workspace;
use kit::quiet_rounds::QuietRounds;
use kit::report::{self, Row};

use crate::arguments::Arguments;

/// Path of the agent's readiness endpoint.
const READY: &str = "/healthz/ready";

const NOTES: &str = "\
the agent as it is shipped, on loopback; each request uses a new connection, timed from before it to the end of the response
admin port: scripted; each figure is the worse of two, before Envoy is first ready (503) and after it (200); medians of all rounds
answer from memory: the same client and a server that does nothing else, in turn with the agent
killed: from the signal to the first 503, slowest of all rounds
wait: from the admin port's last response, after which the agent is ready, to the exit of the process; or the whole process
an empty process: /bin/true, in turn with wait
delay: Envoy started by the agent, from the start to the first 200, minus the same Envoy alone to its first LIVE; medians";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let (rows, quiet) = runtime.block_on(measure(Arguments::parse()))?;
    let file = report::write(&workspace().join("target"), "agent", &rows)?;
    let table = report::table(&rows);
    writeln!(std::io::stdout(), "{table}\n\n{NOTES}\n{}\n{}", quiet.summary(), file.display())?;
    Ok(())
}

async fn measure(arguments: Arguments) -> std::io::Result<(Vec<Row>, QuietRounds)> {
    let Arguments { requests, questions, waits, rounds, seconds, bench: _ } = arguments;
    let mut quiet = QuietRounds::default();
    let mut rows = memory::measure(requests, Duration::from_secs(seconds)).await?;
    rows.push(scrape::measure().await?);
    rows.extend(admin::measure(&mut quiet, rounds, questions).await?);
    rows.push(quiet.round(idle::measure).await?);
    rows.extend(death::measure(&mut quiet, rounds).await?);
    rows.extend(wait::measure(&mut quiet, rounds, waits).await?);
    rows.extend(startup::measure(&mut quiet, rounds).await?);
    rows.extend(quiet.rows());
    Ok((rows, quiet))
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
