//! Measures the time from a change of an application's health to its appearance on a page.

use std::time::Duration;

use browser_tests::agent_page::AgentPage;
use browser_tests::browser::Browser;
use browser_tests::mesh::Mesh;
use kit::app::switched::Behavior;
use kit::report::{Row, median, quantile};
use kit::vm::fleet;
use serde_json::{Value, json};

use crate::now;

/// Updates within this time appear at once to a person who has caused the change.
const BAR: f64 = 1000.0;
/// Makes the changes fall on different moments of the agent's and discovery's intervals.
const STEP: Duration = Duration::from_millis(137);
/// Records when the document's text begins to match, in `window.shown`.
const RECORD: &str = "
const [select, word] = arguments;
window.shown = null;
const isShown = () => [...document.querySelectorAll(select)].some(row => row.innerText.includes(word));
const record = () => {
  if (window.shown === null && isShown()) window.shown = performance.timeOrigin + performance.now();
};
window.observer?.disconnect();
window.observer = new MutationObserver(record);
window.observer.observe(document.body, {subtree: true, childList: true, characterData: true});
return isShown();";

/// Measures the page of the agent, whose probe `cart/readyz` begins to fail and to succeed in turn.
pub(crate) async fn agent(browser: &Browser, page: &AgentPage, changes: u32) -> Vec<Row> {
    page.set_cart(Behavior::Serving);
    page.probe().await;
    browser.open(&page.url()).await;
    let row = "#probes tbody tr:nth-child(2)";
    browser
        .until(
            "the probe succeeds",
            &format!("document.querySelector('{row}')?.innerText.includes('succeeds')"),
        )
        .await;
    let mut times = Vec::new();
    for change in 0..changes {
        tokio::time::sleep(STEP * (change % 8)).await;
        let (behavior, word) = match change % 2 {
            0 => (Behavior::Failing, "fails"),
            _ => (Behavior::Serving, "succeeds"),
        };
        page.set_cart(behavior);
        record(browser, row, word).await;
        page.probe().await;
        let begin = now();
        times.push(shown(browser).await - begin);
    }
    rows("agent", &times)
}

/// Measures the page of discovery; the health of a machine among ten thousand changes.
pub(crate) async fn discovery(browser: &Browser, mesh: &Mesh, changes: u32) -> Vec<Row> {
    let address = fleet::address(0);
    browser.open(&format!("{}#query={address}", mesh.url())).await;
    let row = "#list tbody tr";
    browser.until("the machine is found", "document.querySelectorAll('#list tbody th').length >= 1").await;
    let mut times = Vec::new();
    for change in 0..changes {
        tokio::time::sleep(STEP * (change % 8)).await;
        let word = if mesh.fleet.is_healthy(0) { "removed" } else { "served" };
        record(browser, row, word).await;
        let begin = now();
        mesh.fleet.set_healthy(0, !mesh.fleet.is_healthy(0));
        times.push(shown(browser).await - begin);
    }
    rows("discovery with 10,000 machines", &times)
}

async fn record(browser: &Browser, select: &str, word: &str) {
    let result = browser.driver.execute(RECORD, [json!(select), json!(word)]).await.expect("the script runs");
    assert_eq!(*result.json(), json!(false), "{word} is shown before the change");
}

async fn shown(browser: &Browser) -> f64 {
    browser.until("the change appears", "window.shown !== null").await;
    let shown: Value = browser.value("window.shown").await;
    shown.as_f64().expect("a time")
}

fn rows(name: &str, times: &[f64]) -> Vec<Row> {
    vec![
        Row::new(format!("{name}, change to its appearance, median"), median(times), "ms").at_most(BAR),
        Row::new(format!("{name}, change to its appearance, slowest"), quantile(times, 1.0), "ms"),
    ]
}
