//! Web pages of other sites, in the browser of somebody who can reach the port: on its machine, or through a
//! forwarded port.

use std::net::SocketAddr;

use browser_tests::agent_page::AgentPage;
use browser_tests::browser::Browser;
use kit::vm::fixture::{Fixture, FixtureSettings};
use serde_json::json;

/// The name of the other site. After DNS rebinding it has the address of the port.
const SITE: &str = "attack.example";

/// Asserts that a page can neither read nor change anything: `reads` and `changes` are paths.
async fn assert_forbidden(name: &str, port: SocketAddr, reads: &[&str], changes: &[&str]) {
    let browser =
        Browser::start_with(name, &[&format!("--host-resolver-rules=MAP {SITE} {}", port.ip())]).await;
    // A form needs no permission of the other site, and its result replaces the page.
    for path in changes {
        browser.open("data:text/html,<title>page</title>").await;
        let submit = format!(
            "const form = document.createElement('form'); form.method = 'POST';
             form.action = 'http://{port}{path}'; document.body.append(form); form.submit();"
        );
        browser.run(&submit).await;
        let status = "performance.getEntriesByType('navigation')[0].responseStatus";
        browser
            .until("the request is refused", &format!("location.protocol === 'http:' && {status} === 403"))
            .await;
    }
    // The page and the port have the same origin now, so that the page may read every response.
    browser.open(&format!("http://{SITE}:{}/", port.port())).await;
    for (method, paths) in [("GET", reads), ("POST", changes)] {
        for path in paths {
            let fetch = format!(
                "fetch('{path}', {{method: '{method}'}}).then(response => done(response.status), error => done(String(error)));"
            );
            assert_eq!(browser.run_async(&fetch).await, json!(403), "{method} {path}");
        }
    }
}

#[tokio::test]
async fn discovery_refuses_them() {
    let fixture = Fixture::start("b-dforeign", FixtureSettings::default()).await;
    let reads = ["/", "/events", "/debug/workloads"];
    assert_forbidden("b-dforeign", fixture.discovery.monitoring(), &reads, &["/debug/workloads/release"])
        .await;
}

#[tokio::test]
async fn the_agent_refuses_them() {
    let page = AgentPage::start("b-foreign").await;
    let reads = ["/", "/events", "/debug/state"];
    assert_forbidden(
        "b-foreign",
        page.sidecar.local_address(),
        &reads,
        &["/drain", "/undrain", "/quitquitquit"],
    )
    .await;
}
