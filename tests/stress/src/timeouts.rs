//! Applications that never respond: after the timeout nothing is left of the probes, in Envoy or at
//! the application.

use serde_json::{Map, Value, json};

use super::{Limit, Served};
use kit::app::counted::{CountedApp, Habit};
use kit::load::{Load, ask, kubelet_request};
use kit::net;
use kit::report::Row;
use kit::wait::until;

/// Maximum number of probes of one prober and client in flight on one worker.
const IN_FLIGHT: u64 = 10;
/// Groups of four probers.
const FOURS: usize = 2;
/// Gauges that are above 0 while probes are in flight, and must be 0 afterwards.
const GAUGES: &[&str] = &[
    "http.app_health.downstream_rq_active",
    "http.app_health.downstream_cx_active",
    "cluster.app_health_http.upstream_rq_active",
    "cluster.app_health_http.upstream_cx_active",
    "cluster.app_health_grpc.upstream_rq_active",
    "cluster.app_health_grpc.upstream_cx_active",
    "cluster.app_health_callout_http.upstream_rq_active",
    "cluster.app_health_callout_http.upstream_cx_active",
];

/// Lets `total` probes reach their timeout of a second: of a silent application, of one that sends
/// its headers byte by byte, of a silent gRPC server, and of one behind a redirect.
///
/// # Panics
/// If one gets another status than 504, or a stream, a socket, a callout or memory is left.
pub async fn run(name: &str, total: u64) -> Vec<Row> {
    let ip = net::loopback();
    let silent = CountedApp::start(ip, Habit::Hang);
    let drips = CountedApp::start(ip, Habit::Drip(b"HTTP/1.1 200 OK\r\nX-Slow: ".to_vec()));
    let location =
        format!("HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: http://{}/\r\n\r\n", silent.address);
    let redirects = CountedApp::start(ip, Habit::Answer(location.into_bytes()));
    let four = [
        json!({"httpGet": {"port": silent.port()}, "timeoutSeconds": 1}),
        json!({"httpGet": {"port": drips.port()}, "timeoutSeconds": 1}),
        json!({"httpGet": {"port": redirects.port()}, "timeoutSeconds": 1}),
        json!({"grpc": {"port": silent.port()}, "timeoutSeconds": 1}),
    ];
    let path = |number: u64| format!("/app-health/app-{number}/readyz");
    let probers = || std::iter::repeat_n(&four, FOURS).flatten();
    let table: Map<String, Value> =
        (0..).zip(probers()).map(|(number, prober)| (path(number), prober.clone())).collect();
    let pod = Served::start(name, ip, &table.into(), Limit::Raised).await;
    let count = u64::try_from(probers().count()).expect("a few");
    let requests: Vec<Vec<u8>> =
        (0..count).map(|number| kubelet_request(pod.listener, &path(number))).collect();

    // Client n always uses prober n mod `count`, so that none exceeds its limit.
    let load = async |total| {
        let load = Load { total, at_once: count * IN_FLIGHT.min(total.div_ceil(count)), per_second: None };
        let tally = load
            .run(|number| {
                let place = usize::try_from(number % count).expect("a 64-bit machine");
                ask(None, pod.listener, &requests[place])
            })
            .await;
        assert_eq!(tally.of(504), total, "{tally:?}\n{}", pod.log());
        pod.until_idle(GAUGES).await;
        for app in [&silent, &drips, &redirects] {
            until("no connection of an application is open", async || app.open() == 0).await;
        }
        tally
    };
    // The highest number of probes in flight comes first, so that one-time allocations have
    // happened.
    load(total.min(count * IN_FLIGHT)).await;
    let process = pod.process();
    let (before, sockets) = (pod.memory().await, process.sockets());
    let tally = load(total).await;
    until("no socket is left", async || process.sockets() <= sockets).await;
    let mut rows = vec![
        Row::new("timeouts", super::float(total), "probes"),
        Row::new("slowest probe with a timeout of 1 s", super::millis(tally.slowest), "ms"),
    ];
    rows.extend(pod.memory().await.is_flat_since(before));
    pod.stop().await;
    rows
}
