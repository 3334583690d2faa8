//! Clients that send nothing, or one byte at a time: they are disconnected, and probes continue.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::{join, join_all};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, timeout};

use super::{Limit, Served, millis};
use kit::app::counted::{CountedApp, Habit};
use kit::load::{Load, ask, connect, kubelet_request};
use kit::net;
use kit::report::Row;
use kit::wait;

/// Number of concurrent slow clients, below the usual limit of file descriptors.
const AT_ONCE: u64 = 800;

/// Opens `callers` connections in total, half of them idle and half sending a byte per second, as
/// many at once as leave room for probes, which are sent all the time.
///
/// # Panics
/// If a client is not disconnected, or a probe is not answered.
pub async fn run(name: &str, callers: u64) -> Vec<Row> {
    let ip = net::loopback();
    let app = CountedApp::start(ip, Habit::status(200));
    let table = json!({"/app-health/app/readyz": {"httpGet": {"port": app.port()}}});
    let pod = Served::start(name, ip, &table, Limit::Shipped).await;
    let request = kubelet_request(pod.listener, "/app-health/app/readyz");
    let mut slowest = (Duration::ZERO, Duration::ZERO);
    let mut left = callers;
    while left > 0 {
        let wave = left.min(AT_ONCE);
        left -= wave;
        let cut = join_all((0..wave).map(|number| cut(pod.listener, number % 2 == 0)));
        let probes = Load { total: 40, at_once: 4, per_second: Some(10) };
        let (cut, probed) = join(cut, probes.run(|_| ask(None, pod.listener, &request))).await;
        assert_eq!(probed.of(200), probes.total, "{probed:?}");
        slowest.0 = cut.into_iter().fold(slowest.0, Duration::max);
        slowest.1 = slowest.1.max(probed.slowest);
        pod.until_idle(&["http.app_health.downstream_cx_active"]).await;
    }
    pod.stop().await;
    vec![
        Row::new("clients that were disconnected", super::float(callers), "clients"),
        Row::new("longest time until one was disconnected", millis(slowest.0), "ms"),
        Row::new("slowest probe meanwhile", millis(slowest.1), "ms"),
    ]
}

/// Opens a connection, sends too little, and returns the time until it is closed.
async fn cut(listener: SocketAddr, idle: bool) -> Duration {
    let mut stream = connect(None, listener).await.expect("Envoy accepts");
    let started = Instant::now();
    let closed = async {
        let mut bytes = b"GET /app-health/app/readyz HTTP/1.1\r\nX-Slow: ".iter().chain(b"x".iter().cycle());
        let mut block = [0; 512];
        loop {
            if !idle {
                let byte = *bytes.next().expect("there is always one more");
                // A closed connection is detected by the read.
                let _ = stream.write_all(&[byte]).await;
            }
            if let Ok(Ok(0) | Err(_)) = timeout(Duration::from_secs(1), stream.read(&mut block)).await {
                break;
            }
        }
    };
    timeout(wait::timeout(), closed)
        .await
        .unwrap_or_else(|_| panic!("a client (idle: {idle}) is not disconnected"));
    started.elapsed()
}
