//! The pictures of the status pages in the documents.

use std::path::Path;

use kit::app::switched::Behavior;
use serde_json::json;

use crate::agent_page::AgentPage;
use crate::browser::{Browser, Colors, Screen};
use crate::mesh::Mesh;

/// Size of the pictures, in pixels; the whole width of the pages fits.
const DESKTOP: Screen = Screen { width: 1280, height: 920, colors: Colors::Light };
const PHONE: Screen = Screen { width: 390, height: 780, colors: Colors::Dark };
const AGENTS: u32 = 240;

/// Writes all pictures into `folder`.
///
/// # Errors
/// If the folder is not writable.
///
/// # Panics
/// If a page does not show what the picture should contain.
pub async fn write(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let browser = Browser::start("pictures").await;
    browser.command("Emulation.setScrollbarsHidden", json!({"hidden": true})).await;
    browser.set_screen(DESKTOP).await;
    let agent = agent(&browser).await;
    std::fs::write(folder.join("agent-page.png"), browser.picture().await)?;
    browser.set_screen(PHONE).await;
    browser.run("document.getElementById('probes').scrollIntoView()").await;
    std::fs::write(folder.join("agent-page-phone.png"), browser.picture().await)?;
    drop(agent);
    browser.set_screen(DESKTOP).await;
    let _mesh = mesh(&browser).await;
    std::fs::write(folder.join("discovery-page.png"), browser.picture().await)
}

/// Opens the page of an agent whose application `cart` has failed, recovered, and fails again.
async fn agent(browser: &Browser) -> AgentPage {
    let page = AgentPage::start("pictures-agent").await;
    browser.open(&page.url()).await;
    let bars = "document.querySelectorAll('.results')[1]?.children.length";
    let mut probes = 0;
    // The first results are counted from when the page has read the counters once.
    browser.until("the page is live", &format!("{bars} === 0")).await;
    for (behavior, times) in
        [(Behavior::Serving, 24), (Behavior::Failing, 2), (Behavior::Serving, 12), (Behavior::Failing, 3)]
    {
        page.set_cart(behavior);
        for _ in 0..times {
            page.probe().await;
        }
        probes += times;
        browser.until("the results are shown", &format!("{bars} === {probes}")).await;
    }
    page
}

/// Opens the page of discovery with some unhealthy machines, and the details of one of them.
async fn mesh(browser: &Browser) -> Mesh {
    let mesh = Mesh::start("pictures-mesh", 0, AGENTS).await;
    for agent in [3, 17, 58, 59, 104, 171, 238] {
        mesh.fleet.set_healthy(agent, false);
    }
    browser.open(&format!("{}#state=removed", mesh.url())).await;
    let found = json!(format!("7 of {AGENTS} machines"));
    browser
        .until(
            "seven machines are removed",
            &format!("document.getElementById('found').textContent === {found}"),
        )
        .await;
    browser.run("document.querySelector('#list button').click()").await;
    let changes = "document.querySelectorAll('#details tbody tr').length";
    browser.until("the history is shown", &format!("{changes} > 0")).await;
    browser.run("document.activeElement.blur(); scrollTo(0, 0)").await;
    mesh
}
