//! Measures the server while agents send only heartbeats.

use std::time::Duration;

use kit::process::Process;
use kit::report::Row;
use kit::vm::fleet::Crowd;
use tokio::time::sleep;

use crate::{Failure, say};

/// The default heartbeat interval of agents.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(60);
/// Wait until memory that only the registrations need has been released, and heartbeats have begun.
const SETTLE: Duration = Duration::from_secs(45);
const KIB: f64 = 1024.0;
const MIB: f64 = KIB * KIB;

/// Measures memory and CPU time over `span`.
pub(crate) async fn measure(crowd: &Crowd, span: Duration) -> Result<Vec<Row>, Failure> {
    say("steady");
    sleep(SETTLE).await;
    let (server, load) = (crowd.process(), Process::new(std::process::id()));
    let (before, load_before) = (server.cpu(), load.cpu());
    let reports = crowd.fleet.tally.acknowledgements();
    sleep(span).await;
    let share = (server.cpu() - before).as_secs_f64() / span.as_secs_f64();
    let load_share = (load.cpu() - load_before).as_secs_f64() / span.as_secs_f64();
    let reports = bytes(crowd.fleet.tally.acknowledgements() - reports) / span.as_secs_f64();
    let agents = f64::from(crowd.plan.agents);
    let rss = bytes(server.rss());
    Ok(vec![
        Row::new("server, memory (RSS) without agents", bytes(crowd.base) / MIB, "MiB").at_most(64.0),
        Row::new(format!("server, memory (RSS) with {agents} agents"), rss / MIB, "MiB"),
        Row::new("server, memory for each agent", (rss - bytes(crowd.base)) / agents / KIB, "KiB")
            .at_most(64.0),
        Row::new("server, steady, CPU time", share, "cores").at_most(0.2),
        Row::new("steady, heartbeats", reports, "/s"),
        Row::new("steady, CPU time of the load generator", load_share, "cores"),
    ])
}

pub(crate) fn bytes(bytes: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    let bytes = bytes as f64;
    bytes
}
