//! Benchmark of xDS through the agent: what a push takes longer, memory with many endpoints and during a
//! large response, the replay after a lost control plane, and the start of Envoy from the stored
//! configuration. Istio's pilot-agent does the same work in the same rounds. It prints a table and
//! writes `target/bench/xds-proxy.json`. A missed target is reported and is not an error; a measurement
//! that fails is an error.

#[path = "xds_proxy/arguments.rs"]
mod arguments;
#[path = "xds_proxy/latency.rs"]
mod latency;
#[path = "xds_proxy/memory.rs"]
mod memory;
#[path = "xds_proxy/relay.rs"]
mod relay;
#[path = "xds_proxy/replay.rs"]
mod replay;
#[path = "xds_proxy/route.rs"]
mod route;
#[path = "xds_proxy/start.rs"]
mod start;

use std::error::Error;
use std::io::Write as _;
use std::time::Duration;

use clap::Parser as _;
use kit::envoy::workspace;
use kit::quiet_rounds::QuietRounds;
use kit::report::{self, Row};

use crate::arguments::Arguments;

/// An error of the measurement itself.
type Failure = Box<dyn Error + Send + Sync>;

const NOTES: &str = "\
the agent for virtual machines as it is shipped, pilot-agent as built for Istio's releases; plaintext to the control plane
push: a new version of the 100 endpoints of a cluster, from the control plane's send until a client has read the whole response;
  one at a time, in turn directly, through a relay that copies bytes, the agent and pilot-agent;
  added: median over the rounds of the difference
memory: 10,000 endpoints in 100 clusters, without Envoy; peak: from before a response of 16 MiB until its acknowledgement
replay: from the accepted connection until the control plane has received all subscriptions
start: from the start of the agent, with a real Envoy, to the first 200 of /healthz/ready";

fn main() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (rows, quiet) = runtime.block_on(measure(&Arguments::parse()))?;
    let file = report::write(&workspace().join("target"), "xds-proxy", &rows)?;
    let table = report::table(&rows);
    writeln!(std::io::stdout(), "{table}\n\n{NOTES}\n{}\n{}", quiet.summary(), file.display())?;
    Ok(())
}

async fn measure(arguments: &Arguments) -> Result<(Vec<Row>, QuietRounds), Failure> {
    let mut quiet = QuietRounds::default();
    let mut rows = latency::measure(&mut quiet, arguments.rounds, arguments.pushes).await?;
    rows.extend(memory::measure().await?);
    rows.extend(replay::measure(&mut quiet, arguments.rounds).await?);
    rows.extend(start::measure(&mut quiet, arguments.rounds).await?);
    rows.extend(quiet.rows());
    Ok((rows, quiet))
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
