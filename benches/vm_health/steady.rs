//! Measures the server while agents send only heartbeats.

use std::time::Duration;

use kit::process::Process;
use kit::report::Row;
use kit::vm::fleet::LoadTest;
use tokio::time::sleep;

use crate::{Failure, say};

/// The default heartbeat interval of agents.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(60);
/// Wait until memory that only the registrations need has been released, and heartbeats have begun.
const SETTLE: Duration = Duration::from_secs(45);
const KIB: f64 = 1024.0;
const MIB: f64 = KIB * KIB;

/// Measures memory and CPU time over `span`.
pub(crate) async fn measure(load: &LoadTest, span: Duration) -> Result<Vec<Row>, Failure> {
    say("steady");
    sleep(SETTLE).await;
    let (server, own) = (load.process(), Process::new(std::process::id()));
    let (before, own_before) = (server.cpu(), own.cpu());
    let reports = load.fleet.stats.acknowledgements();
    sleep(span).await;
    let share = (server.cpu() - before).as_secs_f64() / span.as_secs_f64();
    let own_share = (own.cpu() - own_before).as_secs_f64() / span.as_secs_f64();
    let reports = bytes(load.fleet.stats.acknowledgements() - reports) / span.as_secs_f64();
    let agents = f64::from(load.settings.agents);
    let rss = bytes(server.rss());
    Ok(vec![
        Row::new("server, memory (RSS) without agents", bytes(load.base) / MIB, "MiB").at_most(64.0),
        Row::new(format!("server, memory (RSS) with {agents} agents"), rss / MIB, "MiB"),
        Row::new("server, memory for each agent", (rss - bytes(load.base)) / agents / KIB, "KiB")
            .at_most(64.0),
        Row::new("server, steady, CPU time", share, "cores").at_most(0.2),
        Row::new("steady, heartbeats", reports, "/s"),
        Row::new("steady, CPU time of the load generator", own_share, "cores"),
    ])
}

pub(crate) fn bytes(bytes: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    let bytes = bytes as f64;
    bytes
}
