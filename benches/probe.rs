//! Benchmark of the cost of a probe, sent by kubelet's own prober: directly to the application, by
//! a plain Envoy route, through both forms of the filter, by the agent, and by Istio's pilot-agent. It prints a table
//! and writes `target/bench/probe.json`. A missed target is reported and is not an error; a measurement
//! that fails is an error.

#[path = "probe/arguments.rs"]
mod arguments;
#[path = "probe/caller.rs"]
mod caller;
#[path = "probe/client.rs"]
mod client;
#[path = "probe/deadlines.rs"]
mod deadlines;
#[path = "probe/kinds.rs"]
mod kinds;
#[path = "probe/pace.rs"]
mod pace;
#[path = "probe/rounds.rs"]
mod rounds;
#[path = "probe/route.rs"]
mod route;
#[path = "probe/rows.rs"]
mod rows;
#[path = "probe/setup.rs"]
mod setup;

use std::io::Write as _;

use clap::Parser as _;
use kit::envoy::workspace;
use kit::quiet_rounds::QuietRounds;
use kit::report::{self, Row};

use crate::arguments::Arguments;
use crate::client::Client;

const NOTES: &str = "\
plain: an Envoy with the settings of the probe listener, without rate limit and filter, and a STATIC cluster
wasm, native: the shipped probe listener with the filter in this form, and a rate limit that is never reached
p50, p99: with kubelet's own prober as the client; ratio: to the plain route in each round, the median of all rounds
agent: app-health-agent for virtual machines, which has TLS, with --probes agent; kubelet's prober asks it, and it asks the application
pilot-agent: Istio's agent as built for its releases, likewise without an Envoy
cpu: of the whole process, for each probe; the application is a thread of the benchmark, so its cpu is that of the benchmark
light caller: sends the same requests as kubelet's prober with less overhead, so that ratios show the route more clearly";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let (rows, quiet) = runtime.block_on(measure(Arguments::parse()))?;
    let file = report::write(&workspace().join("target"), "probe", &rows)?;
    let table = report::table(&rows);
    writeln!(std::io::stdout(), "{table}\n\n{NOTES}\n{}\n{}", quiet.summary(), file.display())?;
    Ok(())
}

async fn measure(arguments: Arguments) -> std::io::Result<(Vec<Row>, QuietRounds)> {
    let Arguments { rounds, probes, bench: _ } = arguments;
    let mut quiet = QuietRounds::default();
    let setup = setup::Setup::start().await;
    let kubelet = rounds::measure(&setup, Client::Kubelet, &mut quiet, (rounds, probes)).await?;
    let light = rounds::measure(&setup, Client::Light, &mut quiet, (rounds, probes)).await?;
    let mut rows = [rows::kubelet(&kubelet), rows::light(&light)].concat();
    rows.extend(kinds::measure(&setup, &mut quiet, rounds).await?);
    rows.extend(quiet.round(async || deadlines::measure(&setup)).await?);
    setup.stop().await;
    rows.extend(quiet.rows());
    Ok((rows, quiet))
}
