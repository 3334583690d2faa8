//! One source sends far too many requests for one probe: the application, the other probers and the
//! other sources are not affected.

use std::net::IpAddr;
use std::time::Duration;

use futures_util::future::{join, join_all};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::time::{Instant, sleep_until};

use super::{Limit, Served, float};
use kit::app::counted::{CountedApp, Habit};
use kit::caller::Answer;
use kit::load::{Load, Tally, ask, connect, kubelet_request, read_answer};
use kit::net;
use kit::pod::{self, Form};
use kit::report::Row;

/// Connections of the flood, which stay open.
const CONNECTIONS: u32 = 32;
/// Maximum number of probes of one prober and client in flight on one worker.
const IN_FLIGHT: u64 = 10;
/// The rate limit of one source: its burst, and its rate per second.
const BURST: f64 = 400.0;
const PER_SECOND: f64 = 200.0;

/// Sends `per_second` requests per second for `seconds`.
///
/// # Panics
/// If more requests than the limits allow reach the application, or another source is not answered.
pub async fn run(name: &str, seconds: u32, per_second: u32) -> Vec<Row> {
    let ip = net::loopback();
    let (flooded, other) =
        (CountedApp::start(ip, Habit::status(200)), CountedApp::start(ip, Habit::status(200)));
    let table = json!({
        "/app-health/flooded/readyz": {"httpGet": {"port": flooded.port()}},
        "/app-health/other/readyz": {"httpGet": {"port": other.port()}},
    });
    let pod = Served::start(name, ip, &table, Limit::Shipped).await;

    let (bad, good) = (net::loopback(), net::loopback());
    let probes = Load { total: u64::from(seconds) * 20, at_once: 4, per_second: Some(20) };
    let probe = kubelet_request(pod.listener, "/app-health/other/readyz");
    let (flood, probed) =
        join(flood(&pod, bad, seconds, per_second), probes.run(|_| ask(Some(good), pod.listener, &probe)))
            .await;

    assert_eq!(probed.of(200), probes.total, "{probed:?}");
    assert_eq!(other.connections(), probes.total);
    // The agent closes connections of a client that exceeds its rate.
    let refused = flood.of(429) + if pod::form() == Form::Agent { flood.of(0) } else { 0 };
    assert!(refused > flood.of(200), "{flood:?}");
    assert_eq!(flood.of(200) + refused, flood.total(), "{flood:?}");
    let allowed = BURST + PER_SECOND * (flood.took.as_secs_f64() + 1.0);
    assert!(float(flooded.connections()) <= allowed, "{} at {allowed}", flooded.connections());
    assert!(flooded.most_open() <= IN_FLIGHT, "{} at once", flooded.most_open());
    pod.stop().await;
    vec![
        Row::new("requests a second of the flood", flood.rate(), "1/s"),
        Row::new(
            "of these received by the application",
            float(flooded.connections()) / flood.took.as_secs_f64(),
            "1/s",
        ),
        Row::new("concurrent at the application", float(flooded.most_open()), "connections"),
        Row::new("slowest probe of another source", super::millis(probed.slowest), "ms"),
    ]
}

/// Sends on connections that stay open, the cheapest way for a client; one that Envoy closes is
/// replaced.
async fn flood(pod: &Served, source: IpAddr, seconds: u32, per_second: u32) -> Tally {
    let request = format!("GET /app-health/flooded/readyz HTTP/1.1\r\nHost: {}\r\n\r\n", pod.listener);
    let (started, pause) = (Instant::now(), Duration::from_secs(1) * CONNECTIONS / per_second);
    let askers = (0..CONNECTIONS).map(async |_| {
        let mut tally = Tally::default();
        let (mut number, mut open) = (0, None);
        while number < per_second / CONNECTIONS * seconds {
            sleep_until(started + pause * number).await;
            let asked = Instant::now();
            let mut stream = match open.take() {
                Some(stream) => stream,
                None => connect(Some(source), pod.listener).await.expect("Envoy accepts"),
            };
            let answer = match stream.write_all(request.as_bytes()).await {
                Ok(()) => read_answer(&mut stream).await.unwrap_or_default(),
                Err(_) => Answer::default(),
            };
            // Envoy may close a connection while the client writes.
            if answer.status != 0 || pod::form() == Form::Agent {
                number += 1;
                tally.add(&answer, asked.elapsed());
                open = Some(stream).filter(|_| answer.header("connection") != Some("close"));
            }
        }
        tally
    });
    let mut all = Tally::default();
    for tally in join_all(askers).await {
        all.add_all(tally);
    }
    all.took = started.elapsed();
    all
}
