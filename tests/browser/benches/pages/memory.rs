//! Measures the memory that a page costs the agent.

use std::time::Duration;

use browser_tests::agent_page::AgentPage;
use browser_tests::browser::Browser;
use kit::process::Process;
use kit::report::Row;
use tokio::time::sleep;

/// Time for which the page is open, or closed, before its memory is read.
const SETTLE: Duration = Duration::from_secs(10);
const MIB: f64 = 1_048_576.0;

pub(crate) async fn measure(page: &AgentPage) -> Vec<Row> {
    let process = Process::new(page.sidecar.pid().as_raw().unsigned_abs());
    let settled = async || {
        sleep(SETTLE).await;
        mib(process.anonymous())
    };
    page.probe().await;
    let before = settled().await;
    let browser = Browser::start("bench-memory").await;
    browser.open(&page.url()).await;
    browser.until("the page is live", "document.getElementById('link').textContent === 'Live.'").await;
    let open = settled().await;
    drop(browser);
    let closed = settled().await;
    vec![
        Row::new("agent, memory without a page", before, "MiB"),
        Row::new("agent, memory that an open page adds", open - before, "MiB").at_most(0.3),
        Row::new("agent, memory that a closed page leaves", closed - before, "MiB"),
    ]
}

fn mib(bytes: u64) -> f64 {
    f64::from(u32::try_from(bytes).expect("less than 4 GiB")) / MIB
}
