//! Tests of the status page on the local port.

use std::path::PathBuf;

use kit::admin::{Mood, ScriptedAdmin};
use kit::app::{App, answer};
use kit::caller;
use kit::envoy;
use kit::events::EventStream;
use kit::sidecar::{Builder, Sidecar};
use kit::wait;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

/// Number of pages that may be open at the same time.
const STREAMS: usize = 4;
const LOCAL: &str = "Host: localhost\r\n";

fn probers(port: u16) -> String {
    let prober = json!({"httpGet": {"path": "/ready?token=s3cret", "port": port,
        "httpHeaders": [{"name": "Authorization", "value": "s3cret"}]}, "timeoutSeconds": 60});
    json!({"/app-health/app/readyz": prober}).to_string()
}

/// Returns the table with this id.
fn table<'a>(event: &'a Value, id: &str) -> &'a Value {
    let tables = event["state"]["tables"].as_array().expect("tables");
    tables.iter().find(|table| table["id"] == id).unwrap_or(&Value::Null)
}

async fn open(sidecar: &Sidecar) -> EventStream {
    EventStream::open(sidecar.local_address(), "/events").await.expect("a stream")
}

#[tokio::test]
async fn a_probe_that_begins_to_fail_appears_through_events() {
    let builder = Builder::new("page");
    let app = App::start(builder.ip, answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")).await;
    let sidecar = builder.env("ISTIO_KUBE_APP_PROBERS", &probers(app.port())).start();
    sidecar.until(200, "ready").await;
    let mut events = open(&sidecar).await;
    let row = |event: &Value| table(event, "probes")["rows"][0].clone();
    let first = events.until("the declared probe", |event| row(event)[0] == "app/readyz").await;
    assert_eq!(row(&first)[1], format!("http :{}/ready?…", app.port()));
    assert_eq!(row(&first)[2]["text"], "no result yet");

    let probe = async || caller::probe(envoy::probe_listener(sidecar.ip), "/app-health/app/readyz").await;
    assert_eq!(probe().await.status, 200);
    let healthy = events.until("a success", |event| row(event)[2]["tone"] == "good").await;
    assert_eq!(row(&healthy)[5]["results"], json!([["ok", 1, true]]));

    app.stop().await;
    assert_eq!(probe().await.word(), "refused");
    let failing = events.until("a failure", |event| row(event)[2]["tone"] == "bad").await;
    assert_eq!(row(&failing)[3], "refused");
    assert_eq!(row(&failing)[5]["results"], json!([["ok", 1, true], ["refused", 1, false]]));
    assert_eq!(row(&failing)[6], "1 of 2 (50.0 %)");
    assert_eq!(failing["state"]["summary"], "Envoy is ready, and 1 of 1 probes fails.");

    // The page without JavaScript shows the same, and nothing secret.
    let page = sidecar.local("GET /", LOCAL).await.text();
    assert!(page.contains("ok ×1, refused ×1"), "{page}");
    assert!(!page.contains("s3cret") && !failing.to_string().contains("s3cret"), "{page}");
}

#[tokio::test]
async fn an_exit_of_envoy_appears_with_its_reason() {
    let sidecar = Builder::new("page-exit").args(&["--envoy-restart", "always"]).start();
    sidecar.until(200, "ready").await;
    let mut events = open(&sidecar).await;
    let first = events.next().await.expect("an event");
    assert_eq!(table(&first, "processes")["rows"][0][1], "started");
    nix::sys::signal::kill(sidecar.envoy_pid(), Signal::SIGKILL).expect("Envoy runs");
    let restarted = events
        .until("the second process", |event| {
            let newest = &table(event, "processes")["rows"][0];
            newest[0] == "2" && newest[1] == "started"
        })
        .await;
    let exit = &table(&restarted, "processes")["rows"][1];
    assert_eq!((&exit[1], &exit[2]), (&json!("exited"), &json!("unexpectedly, terminated by SIGKILL")));
}

/// The agent does not wait for a page when it exits.
#[tokio::test]
async fn an_open_page_ends_with_the_agent() {
    let sidecar = Builder::new("page-end").args(&["--drain-seconds", "0"]).start();
    sidecar.until(200, "ready").await;
    let mut events = open(&sidecar).await;
    assert!(events.next().await.is_some());
    sidecar.signal(Signal::SIGTERM);
    while events.next().await.is_some() {}
    assert_eq!(sidecar.end().await.0, Some(0));
}

#[tokio::test]
async fn the_page_is_protected_and_small() {
    let builder = Builder::new("page-headers");
    let socket: PathBuf = builder.folder.join("agent.sock");
    let sidecar = builder.start();
    sidecar.until(200, "ready").await;
    let page = sidecar.local("GET /", LOCAL).await;
    assert_eq!((page.status, page.complete), (200, true));
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"), "{policy}");
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(page.header(name), Some(value), "{name}");
    }
    assert!(page.body.len() <= 60 << 10, "{} bytes", page.body.len());
    for (request, lines, status) in [
        ("POST /", LOCAL, 405),
        ("POST /events", LOCAL, 405),
        ("GET /", "Host: evil.example\r\n", 403),
        ("GET /", "Host: localhost\r\nX-Forwarded-For: 10.0.0.1\r\n", 403),
        ("GET /events", "Host: localhost\r\nOrigin: http://evil.example\r\n", 403),
        ("GET /events", "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n", 403),
    ] {
        assert_eq!(sidecar.local(request, lines).await.status, status, "{request} {lines:?}");
    }

    let address = format!("unix:{}", socket.display());
    let other = Builder::new("page-unix").args(&["--local-address", &address]).start();
    other.until(200, "ready").await;
    let page = caller::get_unix(&socket, "/").await;
    assert!(page.as_ref().is_ok_and(|page| page.contains("<caption>Readiness</caption>")), "{page:?}");
}

#[tokio::test]
async fn the_number_of_open_pages_is_limited() {
    let admin = ScriptedAdmin::start(Mood::Serves, String::new()).await;
    let sidecar = Builder::bare("page-limit").watching(admin.address).start_plain();
    sidecar.until(200, "ready").await;
    let mut open_pages = Vec::new();
    for _ in 0..STREAMS {
        open_pages.push(open(&sidecar).await);
    }
    let refused = EventStream::open(sidecar.local_address(), "/events").await;
    assert!(refused.as_ref().is_err_and(|status| status.contains("503")), "{:?}", refused.err());
    open_pages.pop();
    wait::until("the place is free again", async || {
        EventStream::open(sidecar.local_address(), "/events").await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn without_an_open_page_no_statistics_are_queried() {
    let metrics = "app_health_probe_success{container=\"</script><b>\",kind=\"livez\"} 1\n";
    let admin = ScriptedAdmin::start(Mood::Serves, metrics.to_owned()).await;
    let sidecar = Builder::bare("page-queries").watching(admin.address).start_plain();
    sidecar.until(200, "ready").await;
    assert_eq!(admin.metrics_queries(), 0);
    let mut events = open(&sidecar).await;
    let event = events.next().await.expect("an event");
    assert_eq!(table(&event, "probes")["rows"][0][0], "</script><b>/livez");
    wait::until("further queries", async || admin.metrics_queries() >= 3).await;
    drop(events);
    wait::until("an interval of three periods without a query", async || {
        let before = admin.metrics_queries();
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
        admin.metrics_queries() == before
    })
    .await;
    // Without the results if the machine is too busy for an answer at once.
    wait::until("a page without events, for which one query was needed", async || {
        let before = admin.metrics_queries();
        let page = sidecar.local("GET /", LOCAL).await.text();
        page.contains("&lt;/script&gt;&lt;b&gt;/livez") && admin.metrics_queries() == before + 1
    })
    .await;

    // A page opens at once even if Envoy does not answer.
    admin.set(Mood::Hangs);
    let page = sidecar.local("GET /", LOCAL).await.text();
    assert!(page.contains("There are no results: Envoy&#39;s admin interface did not answer."), "{page}");
}
