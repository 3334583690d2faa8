//! Measures memory and CPU time of the agent process alone, with a real Envoy as its child.

use std::io::{Error, Result};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use kit::load::{self, Load, kubelet_request};
use kit::process::Process;
use kit::report::Row;
use kit::sidecar::{Builder, Sidecar};
use tokio::time::sleep;

use crate::{READY, idle};

const MIB: f64 = 1_048_576.0;
/// Wait until memory that only the start needs has been released.
const SETTLE: Duration = Duration::from_secs(3);

/// Measures memory when idle, after `requests` and with idle connections, and CPU time over `span`.
pub(crate) async fn measure(requests: u64, span: Duration) -> Result<Vec<Row>> {
    let sidecar = Builder::new("b-memory").args(&["--concurrency", "1"]).start();
    sidecar.until(200, "ready").await;
    let process = process(&sidecar);
    sleep(SETTLE).await;
    let mut rows = vec![memory("idle", process.rss(), 4.0)];
    let before = process.cpu();
    sleep(span).await;
    let share = (process.cpu() - before).as_secs_f64() / span.as_secs_f64() * 100.0;
    rows.push(Row::new("CPU time, idle", share, "% of a core").at_most(0.1));
    ask(sidecar.ready_address(), requests).await?;
    rows.push(memory(&format!("after {requests} requests"), process.rss(), 10.0));
    let _idle = idle::connections(sidecar.ready_address()).await?;
    rows.push(memory("with 1000 idle connections", process.rss(), 10.0));
    Ok(rows)
}

/// Returns the agent's own process, without Envoy.
pub(crate) fn process(sidecar: &Sidecar) -> Process {
    Process::new(sidecar.pid().as_raw().unsigned_abs())
}

pub(crate) fn memory(when: &str, bytes: u64, bar: f64) -> Row {
    let bytes = u32::try_from(bytes).expect("less than 4 GiB");
    Row::new(format!("memory (RSS) {when}"), f64::from(bytes) / MIB, "MiB").at_most(bar)
}

async fn ask(address: SocketAddr, total: u64) -> Result<()> {
    let request = kubelet_request(address, READY);
    let load = Load { total, at_once: 16, per_second: None };
    // Several source addresses, so that ephemeral ports are not exhausted.
    let source = |number: u64| IpAddr::V4(Ipv4Addr::new(127, 9, 0, number.to_le_bytes()[0]));
    let tally = load.run(|number| load::ask(Some(source(number)), address, &request)).await;
    if tally.of(200) == total { Ok(()) } else { Err(Error::other(format!("{:?}", tally.statuses))) }
}
