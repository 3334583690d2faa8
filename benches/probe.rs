//! Benchmark of the cost of a probe, sent by kubelet's own prober: directly to the application, by
//! a plain Envoy route, through the filter, and by Istio's pilot-agent if one runs. It prints a
//! table and writes `target/bench/probe.json`. A missed target is reported and is not an error; a
//! measurement that fails is an error.

#[path = "probe/arguments.rs"]
mod arguments;
#[path = "probe/caller.rs"]
mod caller;
#[path = "probe/client.rs"]
mod client;
#[path = "probe/deadlines.rs"]
mod deadlines;
#[path = "probe/lab.rs"]
mod lab;
#[path = "probe/memory.rs"]
mod memory;
#[path = "probe/owner.rs"]
mod owner;
#[path = "probe/rounds.rs"]
mod rounds;
#[path = "probe/rows.rs"]
mod rows;

use std::io::Write as _;

use clap::Parser as _;
use kit::envoy::workspace;
use kit::report::{self, Row};

use crate::arguments::Arguments;
use crate::client::Client;

const NOTES: &str = "\
plain: a listener of the same Envoy with the same settings, without rate limit and wasm filter, and a STATIC cluster
filter: the shipped probe listener, with its rate limit raised so far that it is never reached
p50, p99: with kubelet's own prober as the client; ratio: to the plain route in each round, the median of all rounds
cpu: of the whole process, for each probe; a process of another user has no rows
application: the default one is a thread of the benchmark, so its cpu and memory are those of that process
light caller: sends the same requests as kubelet's prober with less overhead, so that ratios show the route more clearly";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let rows = runtime.block_on(measure(Arguments::parse()))?;
    let file = report::write(&workspace().join("target"), "probe", &rows)?;
    writeln!(std::io::stdout(), "{}\n\n{NOTES}\n{}", report::table(&rows), file.display())?;
    Ok(())
}

async fn measure(arguments: Arguments) -> std::io::Result<Vec<Row>> {
    let Arguments { rounds, probes, application, pilot_agent, bench: _ } = arguments;
    let lab = lab::Lab::start(application, pilot_agent).await;
    let mut rows = rows::kubelet(&rounds::measure(&lab, Client::Kubelet, rounds, probes).await?);
    rows.extend(rows::light(&rounds::measure(&lab, Client::Light, rounds, probes).await?));
    rows.extend(deadlines::measure(&lab)?);
    rows.extend(memory::measure(&lab).await?);
    lab.stop().await;
    Ok(rows)
}
