//! Benchmark of the status pages in headless Chromium: their size, the first paint, the time from a
//! change to its appearance, the memory that an open page costs the agent, and the page of discovery with
//! ten thousand machines. It prints a table and writes `target/bench/pages.json`. A missed target is
//! reported and is not an error; a measurement that fails is an error.

#[path = "pages/arguments.rs"]
mod arguments;
#[path = "pages/changes.rs"]
mod changes;
#[path = "pages/large.rs"]
mod large;
#[path = "pages/memory.rs"]
mod memory;
#[path = "pages/paint.rs"]
mod paint;

use std::convert::Infallible;
use std::io::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use browser_tests::agent_page::AgentPage;
use browser_tests::browser::Browser;
use browser_tests::mesh::Mesh;
use clap::Parser as _;
use kit::caller;
use kit::envoy::workspace;
use kit::quiet_rounds::QuietRounds;
use kit::report::{self, Row};

use crate::arguments::Arguments;

const MACHINES: usize = 10_000;
/// Machines with an agent; the others never change.
const AGENTS: u32 = 200;

const NOTES: &str = "\
the programs as they are shipped, on loopback; the agent has an Envoy and four probes
size: as served, without JavaScript's events; that of discovery shows 200 of 10,000 machines
first paint: from the start of the navigation, by the browser's Performance API; one word: a page that contains nothing else, in turn
change: from the end of the response to the failing probe, or from the change of the workload's health, to the page's document
memory: pages that no file backs; the page is open for ten seconds
10,000 machines: from the start of the navigation until all are listed; blocked: the longest time without a turn of the page's event loop";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (rows, quiet) = runtime.block_on(measure(&Arguments::parse()));
    let file = report::write(&workspace().join("target"), "pages", &rows)?;
    let table = report::table(&rows);
    writeln!(std::io::stdout(), "{table}\n\n{NOTES}\n{}\n{}", quiet.summary(), file.display())?;
    Ok(())
}

async fn measure(arguments: &Arguments) -> (Vec<Row>, QuietRounds) {
    let mut quiet = QuietRounds::default();
    let agent = AgentPage::start("bench-pages").await;
    let mut rows = vec![size("agent", agent.sidecar.local_address()).await];
    // Before any page was open.
    let memory = quiet.once(async || Ok::<_, Infallible>(memory::measure(&agent).await)).await;
    rows.extend(memory.unwrap_or_else(|never| match never {}));
    let browser = Browser::start("bench-pages").await;
    rows.extend(
        round(&mut quiet, async || paint::measure(&browser, &agent.url(), arguments.loads).await).await,
    );
    rows.extend(round(&mut quiet, async || changes::agent(&browser, &agent, arguments.changes).await).await);
    drop(agent);
    let mesh = Mesh::start("bench-pages", MACHINES - AGENTS as usize, AGENTS).await;
    rows.push(size("discovery", mesh.discovery.monitoring()).await);
    rows.extend(
        round(&mut quiet, async || changes::discovery(&browser, &mesh, arguments.changes).await).await,
    );
    rows.extend(round(&mut quiet, async || large::measure(&browser, &mesh, arguments.seconds).await).await);
    rows.extend(quiet.rows());
    (rows, quiet)
}

/// Measures once more if the machine was busy.
async fn round(quiet: &mut QuietRounds, mut measure: impl AsyncFnMut() -> Vec<Row>) -> Vec<Row> {
    let rows = quiet.round(async || Ok::<_, Infallible>(measure().await)).await;
    rows.unwrap_or_else(|never| match never {})
}

/// Returns the size of a page as it is served.
async fn size(name: &str, address: std::net::SocketAddr) -> Row {
    let page = caller::get(address, "/", &[]).await;
    assert!(page.status == 200 && page.complete, "the page of {name}: {page:?}");
    Row::new(format!("{name}, size"), kib(page.body.len()), "KiB").at_most(60.0)
}

fn kib(bytes: usize) -> f64 {
    f64::from(u32::try_from(bytes).expect("less than 4 GiB")) / 1024.0
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Returns the time in milliseconds that JavaScript calls `Date.now()`, with fractions.
fn now() -> f64 {
    #[expect(clippy::disallowed_methods, reason = "the browser's clock is that of the system")]
    let now = SystemTime::now();
    millis(now.duration_since(UNIX_EPOCH).expect("a time after 1970"))
}
