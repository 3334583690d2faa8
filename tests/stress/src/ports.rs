//! More probes per minute than a machine has ephemeral ports: each uses a new connection,
//! none is retried, none fails.

use std::net::IpAddr;

use serde_json::{Map, Value, json};

use super::{Limit, Served};
use kit::app::counted::{CountedApp, Habit};
use kit::load::{Load, ask, kubelet_request};
use kit::net;
use kit::report::Row;
use kit::wait::until;

/// Sources of probes; each may send 200 per second.
const SOURCES: u32 = 4;
/// Number of probers, so that none has too many probes in flight.
const PROBERS: u64 = 4;

/// Sends `per_second` probes per second for `seconds`, half of them httpGet and half tcpSocket.
///
/// # Panics
/// If one fails, shares a connection, or is retried.
pub async fn run(name: &str, seconds: u32, per_second: u32) -> Vec<Row> {
    let ip = net::loopback();
    let app = CountedApp::start(ip, Habit::status(200));
    let prober = |number: u64| match number % 2 {
        0 => json!({"httpGet": {"port": app.port()}}),
        _ => json!({"tcpSocket": {"port": app.port()}}),
    };
    let table: Map<String, Value> =
        (0..PROBERS).map(|number| (format!("/app-health/app-{number}/readyz"), prober(number))).collect();
    let pod = Served::start(name, ip, &table.into(), Limit::Shipped).await;
    let sources: Vec<IpAddr> = (0..SOURCES).map(|_| net::loopback()).collect();
    let requests: Vec<Vec<u8>> = (0..PROBERS)
        .map(|number| kubelet_request(pod.listener, &format!("/app-health/app-{number}/readyz")))
        .collect();

    let total = u64::from(seconds) * u64::from(per_second);
    let load = Load { total, at_once: 16, per_second: Some(per_second) };
    let tally = load
        .run(|number| {
            let place = usize::try_from(number).expect("a 64-bit machine");
            ask(Some(sources[place / 4 % sources.len()]), pod.listener, &requests[place % requests.len()])
        })
        .await;
    assert_eq!(tally.of(200), total, "{tally:?}\n{}", pod.log());
    // The application may accept a TCP connection after Envoy has already responded to the probe.
    until("every probe has a connection", async || app.connections() >= total).await;
    assert_eq!(app.connections(), total, "one connection for each probe");
    assert_eq!(app.requests(), total.div_ceil(2), "one request for each httpGet");
    pod.stop().await;
    vec![
        Row::new("probes", super::float(total), "probes"),
        Row::new("probes a second", tally.rate(), "1/s"),
        Row::new("slowest probe", super::millis(tally.slowest), "ms"),
    ]
}
