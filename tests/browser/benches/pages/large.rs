//! Measures the page of discovery with ten thousand machines while some of them change.

use std::time::Duration;

use browser_tests::browser::Browser;
use browser_tests::mesh::Mesh;
use kit::report::Row;
use serde_json::json;

use crate::{AGENTS, MACHINES, kib};

/// Pause between the changes of two machines.
const PAUSE: Duration = Duration::from_millis(20);
/// Resolves with the time since the start of the navigation when all machines are listed.
const LISTED: &str = "
const look = () => {
  const text = document.getElementById('found')?.textContent;
  if (text === `${MACHINES} of ${MACHINES} machines`) done(performance.now());
  else requestAnimationFrame(look);
};
look();";
/// Measures the longest time between two turns of the event loop, in `window.blocked`.
const WATCH: &str = "
window.blocked = 0;
let last = performance.now();
setInterval(() => {
  const now = performance.now();
  window.blocked = Math.max(window.blocked, now - last);
  last = now;
}, 5);";

pub(crate) async fn measure(browser: &Browser, mesh: &Mesh, seconds: u64) -> Vec<Row> {
    browser.open("about:blank").await;
    browser.open(&mesh.url()).await;
    let listed = browser.run_async(&format!("const MACHINES = {MACHINES};{LISTED}")).await;
    let elements = browser.value("document.querySelectorAll('*').length").await;
    browser.command("HeapProfiler.collectGarbage", json!({})).await;
    let heap = browser.value("performance.memory.usedJSHeapSize").await.as_u64().expect("a size");
    browser.run(WATCH).await;
    let changes = u64::try_from(Duration::from_secs(seconds).as_millis() / PAUSE.as_millis()).expect("few");
    for change in 0..changes {
        let agent = u32::try_from(change % u64::from(AGENTS)).expect("a small number");
        mesh.fleet.set_healthy(agent, !mesh.fleet.is_healthy(agent));
        tokio::time::sleep(PAUSE).await;
    }
    let blocked = browser.value("window.blocked").await;
    let heap = kib(usize::try_from(heap).expect("a size in memory")) / 1024.0;
    let row = |name: &str, value: Option<f64>, unit| {
        Row::new(format!("10,000 machines, {name}"), value.expect("a number"), unit)
    };
    vec![
        row("load until all are listed", listed.as_f64(), "ms"),
        row("elements in the document", elements.as_f64(), ""),
        row("heap of the page", Some(heap), "MiB"),
        row("longest block while 50 machines change per second", blocked.as_f64(), "ms"),
    ]
}
