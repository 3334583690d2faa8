//! Measures the server's memory over many reports, with a heartbeat interval much shorter than
//! usual.

use std::time::Duration;

use kit::report::Row;
use kit::vm::fleet::LoadTest;
use tokio::time::{Instant, sleep};

use crate::arguments::Arguments;
use crate::steady::bytes;
use crate::{Failure, load, say};

const HEARTBEAT: Duration = Duration::from_secs(2);
/// Pause between two polls of the counter.
const PAUSE: Duration = Duration::from_millis(200);
/// Limit for the counter to make progress.
const PATIENCE: Duration = Duration::from_secs(30);
const MIB: f64 = 1_048_576.0;

/// Compares memory after a tenth of all reports, when every part of the server has been used, with
/// memory after half of them and after all. Connection buffers stop growing at the size that they
/// need; a leak does not.
pub(crate) async fn measure(arguments: &Arguments) -> Result<Vec<Row>, Failure> {
    let load = load(arguments, "b-reports", HEARTBEAT).await?;
    say("reports");
    let stats = load.fleet.stats.clone();
    let first = stats.acknowledgements();
    until(&load, first + arguments.reports / 10).await?;
    let (early, begin, cpu, counted) =
        (load.process().rss(), Instant::now(), load.process().cpu(), stats.acknowledgements());
    until(&load, first + arguments.reports / 2).await?;
    let half = load.process().rss();
    until(&load, first + arguments.reports).await?;
    let reports = bytes(stats.acknowledgements() - counted);
    let cpu = (load.process().cpu() - cpu).as_secs_f64();
    let late = load.process().rss();
    let (reported, rate) = (arguments.reports, reports / begin.elapsed().as_secs_f64());
    Ok(vec![
        Row::new(format!("server, memory after a tenth of {reported} reports"), bytes(early) / MIB, "MiB"),
        Row::new("server, growth from there to half of them", (bytes(half) - bytes(early)) / MIB, "MiB"),
        Row::new("server, growth from there to the last", (bytes(late) - bytes(half)) / MIB, "MiB")
            .at_most(4.0),
        Row::new("reports a second", rate, "/s"),
        Row::new("server, CPU time for a report and its acknowledgement", cpu / reports * 1e6, "us"),
    ])
}

/// Waits until this number of reports has been acknowledged.
async fn until(load: &LoadTest, reports: u64) -> Result<(), Failure> {
    let (mut seen, mut moved) = (0, Instant::now());
    loop {
        let now = load.fleet.stats.acknowledgements();
        if now >= reports {
            return Ok(());
        }
        if now > seen {
            (seen, moved) = (now, Instant::now());
        } else if moved.elapsed() > PATIENCE {
            let why = load.fleet.stats.failure().unwrap_or_default();
            return Err(format!("no progress for {PATIENCE:?} after {now} reports; last error: {why}").into());
        }
        sleep(PAUSE).await;
    }
}
