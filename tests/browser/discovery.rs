//! The page of discovery, with real agents and a real Envoy.

use browser_tests::browser::Browser;
use kit::app::switched::Behavior;
use kit::vm::fixture::{Fixture, FixtureSettings};
use serde_json::{Value, json};
use thirtyfour::Key;

use crate::support::{assert_accessible, assert_quiet, open_live};

/// Number of rows of the list that are in the document, which are all if there are few.
const ROWS: &str = "document.querySelectorAll('#list tbody th').length";

async fn start(name: &str) -> (Fixture, String, Browser) {
    let fixture = Fixture::start(name, FixtureSettings::default()).await;
    let url = format!("http://{}/", fixture.discovery.monitoring());
    (fixture, url, Browser::start(name).await)
}

/// Returns an expression for the row of a machine, whose last column is the address.
fn row(fixture: &Fixture, machine: usize) -> String {
    let address = fixture.machines[machine].ip;
    format!(
        "[...document.querySelectorAll('#list tbody tr')].find(row => row.cells[7]?.innerText === '{address}')"
    )
}

#[tokio::test]
async fn a_machine_that_fails_appears_with_the_event_that_reports_it() {
    let (fixture, url, browser) = start("b-disc").await;
    open_live(&browser, &url).await;
    let row = row(&fixture, 0);
    browser.until("the machine is served", &format!("{row}?.innerText.includes('served')")).await;
    browser.run(&format!("{row}.querySelector('button').click()")).await;
    browser.until("the details are open", "!document.getElementById('details').hidden").await;
    assert_quiet(&browser, &url).await;

    fixture.machines[0].application.set_behavior(Behavior::Failing);
    browser.until("the machine is removed", &format!("{row}.innerText.includes('removed')")).await;
    let address = fixture.machines[0].ip.to_string();
    let changes: Vec<Value> = assert_quiet(&browser, &url)
        .await
        .iter()
        .flat_map(|event| event["rows"].as_array().cloned().unwrap_or_default())
        .filter(|row| row["address"] == address)
        .collect();
    // The condition changes, and then the endpoint: two events, unless one has both.
    let removed = changes.iter().position(|row| row["endpoint"] == "removed");
    assert!(matches!(removed, Some(0 | 1)), "{changes:#?}");
    let history = "[...document.querySelectorAll('#details tbody tr')].map(row => row.cells[1].innerText)";
    browser.until("the history is loaded again", &format!("{history}.join().startsWith('False,True')")).await;
    assert_quiet(&browser, &url).await;
}

#[tokio::test]
async fn without_javascript_the_page_loads_again_by_itself() {
    let (fixture, url, browser) = start("b-dplain").await;
    browser.disable_scripts().await;
    browser.open(&url).await;
    let served =
        "[...document.querySelectorAll('#machines tbody tr')].map(row => row.cells[1].innerText).join()";
    assert_eq!(browser.value(served).await, json!("served,served"));
    fixture.machines[0].application.set_behavior(Behavior::Failing);
    browser.until("the page is loaded again", &format!("{served}.includes('removed')")).await;
    assert_quiet(&browser, &url).await;
    browser.keep_plain_document().await;
    assert_accessible(&browser).await;
}

#[tokio::test]
async fn the_page_is_accessible_in_every_size_and_color() {
    let (fixture, url, browser) = start("b-daccess").await;
    fixture.machines[0].application.set_behavior(Behavior::Failing);
    // A configuration error is a problem that the page lists.
    fixture.discovery.configure_file("broken.yaml", "kind: WorkloadEntry\n");
    open_live(&browser, &url).await;
    browser
        .until("the machine is removed", &format!("{}?.innerText.includes('removed')", row(&fixture, 0)))
        .await;
    browser.until("a problem is listed", "document.querySelectorAll('#problems li').length > 0").await;
    browser.run("document.querySelector('#list button').click()").await;
    browser.until("the history is shown", "document.querySelectorAll('#details tbody tr').length > 0").await;
    assert_accessible(&browser).await;
    assert_quiet(&browser, &url).await;
}

#[tokio::test]
async fn search_and_details_work_with_the_keyboard() {
    let (fixture, url, browser) = start("b-dkeys").await;
    let address = fixture.machines[1].ip.to_string();
    open_live(&browser, &url).await;
    browser.until("both machines are listed", &format!("{ROWS} === 2")).await;
    browser.tab_to("#query").await;
    browser.press(address.as_str()).await;
    browser.until("one machine is found", &format!("{ROWS} === 1")).await;
    assert!(browser.text().await.contains("1 of 2 machines"));
    browser.tab_to("#list button").await;
    browser.press(Key::Enter).await;
    browser.until("the details have the focus", "document.activeElement.id === 'details'").await;
    let details = browser.value("document.getElementById('details').innerText").await;
    assert!(details.as_str().is_some_and(|text| text.contains(&address)), "{details}");
    // The address of the page contains what is shown, so that it can be sent to a colleague.
    let fragment = browser.value("location.hash").await;
    browser.open("about:blank").await;
    open_live(&browser, &format!("{url}{}", fragment.as_str().unwrap_or_default())).await;
    browser.until("the details are open again", "!document.getElementById('details').hidden").await;
    browser.until("one machine is found again", &format!("{ROWS} === 1")).await;
    browser.tab_to("#close").await;
    browser.press(Key::Enter).await;
    browser.until("the list has the focus", "document.activeElement.id === 'list'").await;
    assert_eq!(browser.value("document.getElementById('details').hidden").await, json!(true));
}

/// An error of the configuration quotes the document.
#[tokio::test]
async fn hostile_texts_are_text() {
    let name = "<img src=x onerror=document.title='run'>";
    let (fixture, url, browser) = start("b-dhostile").await;
    let mut entry = kit::vm::documents::entry("hostile", "10.0.0.1");
    entry["metadata"]["name"] = json!(name);
    fixture.discovery.configure_file("hostile.yaml", &entry.to_string());
    let is_text = async |selector: &str| {
        browser.until("the text is shown", &format!("{selector}?.innerText.includes({})", json!(name))).await;
        assert_eq!(
            browser.value("[document.images.length, document.title]").await,
            json!([0, "app-health discovery"])
        );
    };
    open_live(&browser, &url).await;
    is_text("document.getElementById('problems')").await;
    assert_quiet(&browser, &url).await;
    browser.disable_scripts().await;
    browser.open(&url).await;
    is_text("document.getElementById('overview')").await;
    assert_quiet(&browser, &url).await;
}
