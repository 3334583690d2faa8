//! The page of the agent.

use browser_tests::agent_page::{AgentPage, probe_status};
use browser_tests::browser::{Browser, Colors, Screen};
use kit::admin::{Mood, ScriptedAdmin};
use kit::app::switched::Behavior;
use kit::sidecar::Builder;
use nix::sys::signal::Signal;
use serde_json::json;
use thirtyfour::Key;

use crate::support::{PHONE, assert_accessible, assert_quiet, open_live};

/// The text of a row of the probes, without the results, which the page draws.
const CART: &str = "[...document.querySelectorAll('#probes tbody tr')].map(row => row.innerText)\
                    .find(text => text.startsWith('cart/readyz'))";

#[tokio::test]
async fn a_failing_probe_appears_with_the_event_that_reports_it() {
    let (page, browser) = (AgentPage::start("b-agent").await, Browser::start("b-agent").await);
    open_live(&browser, &page.url()).await;
    assert_eq!(page.probe().await, [200; 4]);
    browser.until("the probe succeeds", &format!("{CART}.includes('succeeds')")).await;
    assert_quiet(&browser, &page.url()).await;

    page.set_cart(Behavior::Failing);
    assert_eq!(page.probe().await, [200, 503, 200, 200]);
    browser.until("the probe fails", &format!("{CART}.includes('fails')")).await;
    let events = assert_quiet(&browser, &page.url()).await;
    let statuses: Vec<_> = events.iter().map(|event| probe_status(event, "cart/readyz")).collect();
    // An event that was on its way may still say that it succeeds; the first that says otherwise counts.
    assert!(matches!(statuses.iter().position(|status| *status == "fails"), Some(0 | 1)), "{statuses:?}");
    let text = browser.text().await;
    assert!(text.contains("Envoy is ready, and 1 of 4 probes fails."), "{text}");
    let bars = browser.value("[...document.querySelectorAll('.results')].map(bars => bars.title)").await;
    let failed = bars[1].as_str().unwrap_or_default();
    assert!(failed.starts_with("ok ×1, ") && failed.ends_with(" ×1"), "{bars}");
}

#[tokio::test]
async fn without_javascript_the_page_loads_again_by_itself() {
    let (page, browser) = (AgentPage::start("b-plain").await, Browser::start("b-plain").await);
    browser.disable_scripts().await;
    browser.open(&page.url()).await;
    let text = browser.text().await;
    assert!(
        text.contains("The state when this page was loaded.") && text.contains("no result yet"),
        "{text}"
    );
    page.set_cart(Behavior::Failing);
    assert_eq!(page.probe().await, [200, 503, 200, 200]);
    browser.until("the page is loaded again", &format!("{CART}?.includes('fails')")).await;
    assert_quiet(&browser, &page.url()).await;
    browser.keep_plain_document().await;
    assert_accessible(&browser).await;
}

#[tokio::test]
async fn the_page_is_accessible_in_every_size_and_color() {
    let (page, browser) = (AgentPage::start("b-access").await, Browser::start("b-access").await);
    open_live(&browser, &page.url()).await;
    page.set_cart(Behavior::Failing);
    assert_eq!(page.probe().await, [200, 503, 200, 200]);
    browser.until("the probe fails", &format!("{CART}.includes('fails')")).await;
    assert_accessible(&browser).await;
    assert_quiet(&browser, &page.url()).await;
}

#[tokio::test]
async fn tables_that_are_too_wide_scroll_with_the_keyboard() {
    let (page, browser) = (AgentPage::start("b-keys").await, Browser::start("b-keys").await);
    browser.set_screen(Screen { width: PHONE, height: 640, colors: Colors::Light }).await;
    open_live(&browser, &page.url()).await;
    browser.tab_to("#probes .scroll").await;
    for _ in 0..3 {
        browser.press(Key::Right).await;
    }
    browser.until("the table scrolls", "document.querySelector('#probes .scroll').scrollLeft > 0").await;
    browser.tab_to("a[href='debug/state']").await;
    browser.press(Key::Enter).await;
    browser.until("the link is followed", "location.pathname === '/debug/state'").await;
}

/// A container's name is any text that Envoy reports.
#[tokio::test]
async fn hostile_names_are_text() {
    let name = "<img src=x onerror=document.title='run'>";
    let metrics = format!("app_health_probe_success{{container=\"{name}\",kind=\"livez\"}} 1\n");
    let admin = ScriptedAdmin::start(Mood::Serves, metrics).await;
    let sidecar = Builder::bare("b-hostile").watching(admin.address).start_plain();
    sidecar.until(200, "ready").await;
    let url = format!("http://{}/", sidecar.local_address());
    let browser = Browser::start("b-hostile").await;
    let is_text = async || {
        let names =
            browser.value("[...document.querySelectorAll('#probes tbody th')].map(cell => cell.innerText)");
        assert_eq!(names.await, json!([format!("{name}/livez")]));
        assert_eq!(
            browser.value("[document.images.length, document.title]").await,
            json!([0, "app-health-agent"])
        );
    };
    open_live(&browser, &url).await;
    is_text().await;
    assert_quiet(&browser, &url).await;
    browser.disable_scripts().await;
    browser.open(&url).await;
    is_text().await;
    assert_quiet(&browser, &url).await;
}

#[tokio::test]
async fn a_page_whose_agent_exits_says_so() {
    let admin = ScriptedAdmin::start(Mood::Serves, String::new()).await;
    let sidecar =
        Builder::bare("b-exit").watching(admin.address).args(&["--drain-seconds", "0"]).start_plain();
    sidecar.until(200, "ready").await;
    let browser = Browser::start("b-exit").await;
    open_live(&browser, &format!("http://{}/", sidecar.local_address())).await;
    sidecar.signal(Signal::SIGTERM);
    assert_eq!(sidecar.end().await.0, Some(0));
    let is_told =
        "document.getElementById('link').textContent.startsWith('Not live: the agent does not answer')";
    browser.until("the page is not live", is_told).await;
}
