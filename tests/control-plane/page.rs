//! Tests of discovery's status page on the monitoring port.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::ops::Range;

use kit::caller::{self, Answer};
use kit::events::EventStream;
use kit::wait;
use serde_json::Value;

use crate::discovery_support::Discovery;
use crate::webhook_support::connect_from;

/// Number of machines of the large mesh. A unit test of the rows has more: a debug build reads the
/// documents slowly.
const MACHINES: usize = 2_000;
/// Number of pages that may be open at the same time.
const STREAMS: usize = 8;
const LOCAL: &str = "Host: localhost\r\n";

/// Number of machines of one file, which may have 1 MiB at most.
const MACHINES_PER_FILE: usize = 1000;

/// Writes the file with these machines; the addresses begin with `network`.
fn write_machines(discovery: &Discovery, machines: Range<usize>, network: u8) {
    let mut text = String::new();
    let file = format!("mesh/machines-{}.yaml", machines.start);
    for machine in machines {
        let address = format!("{network}.{}.{}.{}", machine >> 16, machine >> 8 & 255, machine & 255);
        let _ = writeln!(
            text,
            "---\napiVersion: networking.istio.io/v1\nkind: WorkloadEntry\n\
             metadata: {{ name: m{machine:05}, namespace: shop }}\n\
             spec: {{ address: {address}, labels: {{ app: payments }} }}"
        );
    }
    let (new, used) = (discovery.folder.join("machines.new"), discovery.folder.join(file));
    fs::write(&new, text).and_then(|()| fs::rename(new, used)).expect("a writable folder");
}

async fn get(discovery: &Discovery, request: &str, lines: &str) -> Answer {
    caller::send(discovery.monitoring, format!("{request} HTTP/1.1\r\n{lines}\r\n").as_bytes()).await
}

async fn open(monitoring: SocketAddr) -> EventStream {
    EventStream::open(monitoring, "/events").await.expect("a stream")
}

fn number(event: &Value, list: &str) -> usize {
    event[list].as_array().map_or(0, Vec::len)
}

#[tokio::test]
async fn all_machines_arrive_in_parts_and_then_only_what_changes() {
    let discovery = Discovery::start("page", &[]);
    for first in (0..MACHINES).step_by(MACHINES_PER_FILE) {
        write_machines(&discovery, first..first + MACHINES_PER_FILE, 10);
    }
    // One more file has a single machine, which changes below.
    write_machines(&discovery, MACHINES..MACHINES + 1, 10);
    let all = MACHINES + 1;
    let mut events = open(discovery.monitoring).await;
    let counted = |event: &Value| event["counts"]["all"] == all;
    events.until("the number of machines", counted).await;
    // A page that is opened now begins with all machines.
    let mut events = open(discovery.monitoring).await;
    let (mut rows, mut parts) = (0, 0);
    while rows < all {
        let part = events.until("a part of the machines", |event| event["rows"].is_array()).await;
        assert_eq!(part["reset"] == true, parts == 0, "only the first part discards rows");
        assert!(number(&part, "rows") <= 500, "{}", number(&part, "rows"));
        rows += number(&part, "rows");
        parts += 1;
        assert_eq!(part["more"] == true, rows < all);
    }
    assert_eq!(rows, all);

    write_machines(&discovery, MACHINES..all, 11);
    let change = events.until("the changed machine", |event| number(event, "rows") > 0).await;
    assert_eq!(number(&change, "rows"), 1, "{change:#}");
    assert_eq!(change["rows"][0]["address"], "11.0.7.208");
    write_machines(&discovery, MACHINES..MACHINES, 11);
    let change = events.until("the removed machine", |event| number(event, "gone") > 0).await;
    assert_eq!(change["gone"][0], format!("shop/m{MACHINES:05}"));

    // Without JavaScript, the page shows a part of them.
    let page = get(&discovery, "GET /", LOCAL).await;
    assert!(page.complete && page.text().contains("The first 200 of 2000"), "{}", page.text());
    assert!(page.body.len() <= 60 << 10, "{} bytes", page.body.len());
}

#[tokio::test]
async fn the_page_is_protected() {
    let discovery = Discovery::start("page-headers", &[]);
    wait::until("discovery is ready", async || get(&discovery, "GET /", LOCAL).await.status == 200).await;
    let page = get(&discovery, "GET /", LOCAL).await;
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"), "{policy}");
    for (name, value) in [("x-content-type-options", "nosniff"), ("referrer-policy", "no-referrer")] {
        assert_eq!(page.header(name), Some(value), "{name}");
    }
    let history = "GET /debug/workloads/history";
    let machine = format!("{history}?namespace=shop&name=none");
    let (workloads, release) = ("GET /debug/workloads", "POST /debug/workloads/release");
    let change = "X-App-Health-Change: 1\r\n";
    let changing = |lines: &str| format!("{lines}{change}");
    let (local, foreign) = (changing(LOCAL), changing("Host: evil.example\r\n"));
    let (of_page, forwarded) = (
        changing("Host: localhost\r\nOrigin: https://evil.example\r\n"),
        changing("Host: localhost\r\nX-Forwarded-For: 192.0.2.1\r\n"),
    );
    for (request, lines, status) in [
        ("POST /", LOCAL, 405),
        ("POST /events", LOCAL, 405),
        ("GET /", "Host: evil.example\r\n", 403),
        ("GET /events", "Host: evil.example\r\n", 403),
        ("GET /events", "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n", 403),
        (machine.as_str(), LOCAL, 200),
        (history, LOCAL, 400),
        (workloads, LOCAL, 200),
        (workloads, "Host: evil.example\r\n", 403),
        (release, LOCAL, 403),
        (release, &foreign, 403),
        (release, &of_page, 403),
        (release, &forwarded, 403),
        (release, &local, 200),
    ] {
        assert_eq!(get(&discovery, request, lines).await.status, status, "{request} {lines:?}");
    }
}

/// What a proxy on this machine has captured arrives from 127.0.0.6, on behalf of any client.
#[tokio::test]
async fn clients_of_other_machines_neither_read_nor_release() {
    let discovery = Discovery::start("page-remote", &[]);
    wait::until("discovery is ready", async || get(&discovery, "GET /", LOCAL).await.status == 200).await;
    for request in [
        "GET /",
        "GET /events",
        "GET /debug/workloads/history?namespace=shop&name=none",
        "GET /debug/workloads",
        "POST /debug/workloads/release",
    ] {
        let mut stream = connect_from([127, 0, 0, 6], discovery.monitoring).expect("a connection");
        write!(stream, "{request} HTTP/1.1\r\n{LOCAL}X-App-Health-Change: 1\r\n\r\n").expect("a request");
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).expect("an answer");
        assert_eq!(answer.as_slice(), b"HTTP/1.1 403", "{request}");
    }
}

#[tokio::test]
async fn the_number_of_open_pages_is_limited() {
    let discovery = Discovery::start("page-limit", &[]);
    wait::until("discovery is ready", async || get(&discovery, "GET /", LOCAL).await.status == 200).await;
    let mut open_pages = Vec::new();
    for _ in 0..STREAMS {
        open_pages.push(open(discovery.monitoring).await);
    }
    let refused = EventStream::open(discovery.monitoring, "/events").await;
    assert!(refused.as_ref().is_err_and(|status| status.contains("503")), "{:?}", refused.err());
    open_pages.pop();
    wait::until("the place is free again", async || {
        EventStream::open(discovery.monitoring, "/events").await.is_ok()
    })
    .await;
    // Open pages take no connection of the health checks.
    assert_eq!(get(&discovery, "GET /healthz/live", LOCAL).await.status, 200);
}
