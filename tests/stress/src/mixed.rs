//! Requests of every kind in turn, including hostile ones: each gets the right response, and
//! nothing grows.

use std::net::SocketAddr;

use serde_json::json;

use super::{Limit, Memory, pod_at};
use kit::app::counted::{CountedApp, Habit};
use kit::load::{Load, Tally, ask, kubelet_request};
use kit::net;
use kit::pod::Pod;
use kit::report::Row;
use kit::reserved_port::ReservedPort;

/// A kind of request: the bytes of the `number`-th one, and the expected status.
struct Kind {
    name: &'static str,
    request: fn(SocketAddr, u64) -> Vec<u8>,
    status: u16,
}

/// Cheap kinds, all with the same frequency.
const KINDS: &[Kind] = &[
    Kind { name: "healthy", request: |to, _| probe(to, "app"), status: 200 },
    Kind { name: "failing", request: |to, _| probe(to, "failing"), status: 500 },
    Kind { name: "connecting", request: |to, _| probe(to, "tcp"), status: 200 },
    Kind { name: "refused", request: |to, _| probe(to, "refused"), status: 502 },
    Kind { name: "refused, grpc", request: |to, _| probe(to, "refused-grpc"), status: 502 },
    Kind { name: "redirected elsewhere", request: |to, _| probe(to, "elsewhere"), status: 200 },
    Kind {
        name: "undeclared, a new path each time",
        request: |to, number| kubelet_request(to, &format!("/app-health/c{number}/livez%0a{number}")),
        status: 404,
    },
    Kind {
        name: "undeclared, long",
        request: |to, _| kubelet_request(to, &format!("/app-health/{}/livez", "x".repeat(8000))),
        status: 404,
    },
    Kind { name: "not ours", request: |to, number| kubelet_request(to, &format!("/{number}")), status: 404 },
    Kind {
        name: "not ours, with our own headers",
        request: |to, number| {
            with(
                to,
                "GET /",
                &format!("X-App-Health-Kind: http\r\nX-App-Health-Dst: {to}\r\nX-N: {number}\r\n"),
            )
        },
        status: 404,
    },
    Kind {
        name: "escaped slash",
        request: |to, _| kubelet_request(to, "/app-health%2Fapp/readyz"),
        status: 400,
    },
    Kind {
        name: "another method",
        request: |to, _| with(to, "PUT /app-health/app/readyz", "Content-Length: 0\r\n"),
        status: 405,
    },
    Kind {
        name: "with a body",
        request: |to, _| {
            [with(to, "GET /app-health/app/readyz", "Content-Length: 3\r\n"), b"abc".to_vec()].concat()
        },
        status: 400,
    },
    Kind {
        name: "bytes above ASCII in a header",
        request: |to, _| {
            let mut request = with(to, "GET /app-health/app/readyz", "X-Strange: OOOO\r\n");
            request.iter_mut().filter(|byte| **byte == b'O').for_each(|byte| *byte = 0xff);
            request
        },
        status: 200,
    },
    Kind {
        name: "two lengths",
        request: |to, _| with(to, "GET /app-health/app/readyz", "Content-Length: 1\r\nContent-Length: 2\r\n"),
        status: 400,
    },
];

/// Expensive kinds, one request in a hundred.
const COSTLY: &[Kind] = &[
    Kind { name: "a circle of redirects", request: |to, _| probe(to, "circle"), status: 528 },
    Kind {
        name: "headers beyond the limit",
        request: |to, _| {
            with(to, "GET /app-health/app/readyz", &format!("X-Long: {}\r\n", "x".repeat(70_000)))
        },
        status: 431,
    },
    Kind { name: "an endless body", request: |to, _| probe(to, "endless"), status: 200 },
];

/// Sends `total` requests, the kinds in turn.
///
/// # Panics
/// If one gets another status, or Envoy's memory, metrics or log grow.
pub async fn run(name: &str, total: u64) -> Vec<Row> {
    let ip = net::loopback();
    let answer =
        |head: &str| CountedApp::start(ip, Habit::Answer(format!("HTTP/1.1 {head}\r\n\r\n").into_bytes()));
    let app = CountedApp::start(ip, Habit::status(200));
    let failing = CountedApp::start(ip, Habit::status(500));
    let elsewhere = answer("302 Found\r\nContent-Length: 0\r\nLocation: http://elsewhere.example/");
    let circle = answer("302 Found\r\nContent-Length: 0\r\nLocation: /");
    let endless = CountedApp::start(ip, Habit::Answer(endless()));
    let closed = ReservedPort::new(ip);
    let table = json!({
        "/app-health/app/readyz": {"httpGet": {"port": app.port()}},
        "/app-health/failing/readyz": {"httpGet": {"port": failing.port()}},
        "/app-health/tcp/readyz": {"tcpSocket": {"port": app.port()}},
        "/app-health/refused/readyz": {"httpGet": {"port": closed.port()}},
        "/app-health/refused-grpc/readyz": {"grpc": {"port": closed.port()}},
        "/app-health/elsewhere/readyz": {"httpGet": {"port": elsewhere.port()}},
        "/app-health/circle/readyz": {"httpGet": {"port": circle.port()}, "timeoutSeconds": 10},
        "/app-health/endless/readyz": {"httpGet": {"port": endless.port()}},
    });
    let pod = pod_at(name, ip, &table, Limit::Raised).await;

    // A tenth is sent first, so that one-time allocations have happened.
    let mut tally = load(&pod, 0, total / 10).await;
    let (before, series) = (Memory::of(&pod.envoy).await, series(&pod).await);
    let rest = load(&pod, total / 10, total - total / 10).await;
    tally.took += rest.took;
    tally.add_all(rest);

    let mut rows = vec![
        Row::new("requests", super::float(tally.total()), "requests"),
        Row::new("requests a second", tally.rate(), "1/s"),
        Row::new("slowest response", super::millis(tally.slowest), "ms"),
    ];
    rows.extend(Memory::of(&pod.envoy).await.is_flat_since(before));
    assert_eq!(self::series(&pod).await, series, "new metrics were created");
    let log = pod.envoy.log();
    let minutes = super::millis(tally.took) / 60_000.0;
    let lines = u32::try_from(log.lines().count()).map_or(f64::INFINITY, f64::from);
    assert!(lines <= 20.0 * (minutes + 1.0), "{lines} lines in {minutes} minutes:\n{log}");
    assert!(!log.contains("livez%0a"), "the log contains a path sent by a client:\n{log}");
    pod.envoy.stop().await;
    rows
}

async fn load(pod: &Pod, first: u64, total: u64) -> Tally {
    let load = Load { total, at_once: 6, per_second: None };
    load.run(async |number| {
        let number = first + number;
        let kind = kind(number);
        let answer = ask(None, pod.listener, &(kind.request)(pod.listener, number)).await;
        assert_eq!(answer.status, kind.status, "{}: {answer:?}\n{}", kind.name, pod.envoy.log());
        answer
    })
    .await
}

fn kind(number: u64) -> &'static Kind {
    let of = |kinds: &'static [Kind], number: u64| {
        let index = usize::try_from(number).expect("a 64-bit machine") % kinds.len();
        &kinds[index]
    };
    if number % 100 == 99 { of(COSTLY, number / 100) } else { of(KINDS, number) }
}

fn probe(to: SocketAddr, container: &str) -> Vec<u8> {
    kubelet_request(to, &format!("/app-health/{container}/readyz"))
}

/// Returns a request without kubelet's headers.
fn with(to: SocketAddr, line: &str, headers: &str) -> Vec<u8> {
    format!("{line} HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n{headers}\r\n").into_bytes()
}

/// Returns the start of a response whose body is longer than kubelet reads and never ends.
fn endless() -> Vec<u8> {
    let mut answer = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n".to_vec();
    answer.resize(answer.len() + 30_000, b'x');
    answer
}

/// Returns the number of metrics of Envoy.
async fn series(pod: &Pod) -> usize {
    pod.envoy.admin("/stats").await.expect("the admin port answers").lines().count()
}
