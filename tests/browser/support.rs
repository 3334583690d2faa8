//! Assertions that hold for every page.

use browser_tests::accessibility::severe_violations;
use browser_tests::browser::{Browser, Colors, Screen};
use browser_tests::network_log::NetworkEvent;
use serde_json::json;

/// Width of a small phone, in CSS pixels.
pub(crate) const PHONE: u32 = 360;
const DESKTOP: u32 = 1280;

/// Opens a page and waits until it receives events.
pub(crate) async fn open_live(browser: &Browser, url: &str) {
    browser.open(url).await;
    browser.until("the page is live", "document.getElementById('link').textContent === 'Live.'").await;
}

/// Asserts that the page has reported no error, and that the browser has requested nothing but the
/// page and what belongs to it. Returns the data of the server-sent events since the last call.
///
/// # Panics
/// If there is an error, or a request to another address.
pub(crate) async fn assert_quiet(browser: &Browser, url: &str) -> Vec<serde_json::Value> {
    assert_eq!(browser.console().await, Vec::<String>::new());
    let mut events = Vec::new();
    for event in browser.network().await {
        match event {
            NetworkEvent::Request(to) => {
                assert!(to.starts_with(url) || to.starts_with("data:"), "a request to {to}");
            }
            NetworkEvent::ServerSent(data) => events.push(data),
        }
    }
    events
}

/// Asserts that the page is accessible in every size and color, and scrolls in one direction only.
///
/// # Panics
/// If there is a serious violation, or the document is wider than the window.
pub(crate) async fn assert_accessible(browser: &Browser) {
    for width in [PHONE, DESKTOP] {
        for colors in [Colors::Light, Colors::Dark] {
            let screen = Screen { width, height: 800, colors };
            browser.set_screen(screen).await;
            let wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth";
            assert_eq!(browser.value(wide).await, json!(false), "{screen:?} scrolls sideways");
            assert_eq!(severe_violations(browser).await, Vec::<String>::new(), "{screen:?}");
        }
    }
}
