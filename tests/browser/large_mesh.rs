//! The page of discovery with ten thousand machines.

use browser_tests::browser::{Browser, Colors, Screen};
use browser_tests::mesh::Mesh;
use serde_json::json;
use thirtyfour::Key;

use crate::support::{PHONE, assert_accessible, assert_quiet, open_live};

const DESKTOP: Screen = Screen { width: 1280, height: 800, colors: Colors::Light };
const ENTRIES: usize = 9_980;
const AGENTS: u32 = 20;
/// Limit of the elements in the document, whatever the number of machines.
const ELEMENTS: u64 = 1_000;
const FOUND: &str = "document.getElementById('found').textContent";
/// Sets a field of the filter as a user does.
const SET: &str = "const field = document.getElementById(arguments[0]); field.value = arguments[1];\
                   field.dispatchEvent(new Event('input', {bubbles: true}));";

async fn set(browser: &Browser, field: &str, value: &str) {
    browser.driver.execute(SET, [json!(field), json!(value)]).await.expect("the script runs");
}

async fn until_found(browser: &Browser, found: usize, all: usize) {
    let what = format!("{found} machines are found");
    browser.until(&what, &format!("{FOUND} === '{found} of {all} machines'")).await;
}

#[tokio::test]
async fn ten_thousand_machines_are_searched_and_scrolled() {
    let (mesh, browser) = (Mesh::start("b-large", ENTRIES, AGENTS).await, Browser::start("b-large").await);
    let all = mesh.machines;
    assert_eq!(all, 10_000);
    browser.set_screen(DESKTOP).await;
    open_live(&browser, &mesh.url()).await;
    until_found(&browser, all, all).await;
    let elements =
        async || browser.value("document.querySelectorAll('*').length").await.as_u64().unwrap_or(u64::MAX);
    assert!(elements().await < ELEMENTS, "{} elements", elements().await);

    // Search: words in any order, which may be in different columns.
    set(&browser, "query", "M00042").await;
    until_found(&browser, 1, all).await;
    set(&browser, "query", "10.1.0. shop").await;
    until_found(&browser, 256, all).await;
    set(&browser, "query", "nothing-like-this").await;
    until_found(&browser, 0, all).await;
    set(&browser, "query", "").await;

    // Filters: the agents report conditions, the other machines have none.
    set(&browser, "state", "none").await;
    until_found(&browser, ENTRIES, all).await;
    set(&browser, "state", "True").await;
    until_found(&browser, 20, all).await;
    for agent in 0..5 {
        mesh.fleet.set_healthy(agent, false);
    }
    set(&browser, "state", "removed").await;
    until_found(&browser, 5, all).await;
    set(&browser, "state", "").await;
    set(&browser, "reason", "ProbeFailed").await;
    until_found(&browser, 5, all).await;
    set(&browser, "reason", "").await;
    until_found(&browser, all, all).await;

    // The list has a row for each machine, of which those in sight are in the document.
    browser.run("document.getElementById('list').scrollTop = 1e9").await;
    let last = "[...document.querySelectorAll('#list tbody th')].at(-1)?.innerText";
    browser.until("the last machine is in sight", &format!("{last} === 'shop/m09979'")).await;
    assert!(elements().await < ELEMENTS, "{} elements", elements().await);
    let is_visible = "(() => { const [row, list] = [[...document.querySelectorAll('#list tbody th')].at(-1), \
                      document.getElementById('list')].map(part => part.getBoundingClientRect()); \
                      return row.top >= list.top && row.bottom <= list.bottom + 1; })()";
    browser.until("its row is inside the list", is_visible).await;

    assert_accessible(&browser).await;
    browser.set_screen(Screen { width: PHONE, height: 640, colors: Colors::Light }).await;
    assert!(elements().await < ELEMENTS, "{} elements", elements().await);
    assert_quiet(&browser, &mesh.url()).await;
}

#[tokio::test]
async fn without_javascript_a_part_of_the_machines_is_shown() {
    let (mesh, browser) = (Mesh::start("b-lplain", 1_000, 0).await, Browser::start("b-lplain").await);
    browser.disable_scripts().await;
    browser.open(&mesh.url()).await;
    let text = browser.text().await;
    assert!(text.contains("The first 200 of 1000; with JavaScript, all are shown."), "{text}");
    assert_eq!(browser.value("document.querySelectorAll('#machines tbody tr').length").await, json!(200));
    assert_quiet(&browser, &mesh.url()).await;
    browser.keep_plain_document().await;
    assert_accessible(&browser).await;
}

/// Rows appear and disappear while the focus moves through the list.
#[tokio::test]
async fn the_focus_moves_from_machine_to_machine() {
    let (mesh, browser) = (Mesh::start("b-lfocus", 1_000, 0).await, Browser::start("b-lfocus").await);
    open_live(&browser, &mesh.url()).await;
    until_found(&browser, 1_000, 1_000).await;
    browser.tab_to("#list button").await;
    for machine in 0..40 {
        let is_focused = format!("document.activeElement.textContent === 'shop/m{machine:05}'");
        browser.until("the next machine has the focus", &is_focused).await;
        browser.press(Key::Tab).await;
    }
}
