//! Clients that disconnect: the application's connection is closed, and the prober's limit of
//! concurrent probes is released.

use futures_util::future::join_all;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use super::{Limit, Served};
use kit::app::counted::{CountedApp, Habit};
use kit::load::{connect, kubelet_request};
use kit::net;
use kit::report::Row;
use kit::wait::until;

/// Maximum number of probes of one prober and client in flight on one worker.
const IN_FLIGHT: u64 = 10;

/// In each round, as many clients as a prober allows send a probe to an application that does not
/// respond, and disconnect.
///
/// # Panics
/// If an application's connection stays open, or the limit is not released, so that fewer than
/// ten probes get through.
pub async fn run(name: &str, rounds: u64) -> Vec<Row> {
    let ip = net::loopback();
    let silent = CountedApp::start(ip, Habit::Hang);
    let drips =
        CountedApp::start(ip, Habit::Drip(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n".to_vec()));
    let table = json!({
        "/app-health/silent/readyz": {"httpGet": {"port": silent.port()}, "timeoutSeconds": 600},
        "/app-health/drips/readyz": {"httpGet": {"port": drips.port()}, "timeoutSeconds": 600},
    });
    let pod = Served::start(name, ip, &table, Limit::Raised).await;
    for round in 1..=rounds {
        let mut callers = Vec::new();
        for container in ["silent", "drips"] {
            let request = kubelet_request(pod.listener, &format!("/app-health/{container}/readyz"));
            callers.extend(
                join_all((0..IN_FLIGHT).map(async |_| {
                    let mut caller = connect(None, pod.listener).await.expect("Envoy accepts");
                    caller.write_all(&request).await.expect("Envoy reads");
                    caller
                }))
                .await,
            );
        }
        // If a permit had been lost in an earlier round, one of these would have been answered with
        // 429.
        for app in [&silent, &drips] {
            until("the application has received all probes", async || app.requests() == round * IN_FLIGHT)
                .await;
        }
        drop(callers);
        for app in [&silent, &drips] {
            until("the application's connections are closed", async || app.open() == 0).await;
        }
        pod.until_idle(&["http.app_health.downstream_rq_active"]).await;
    }
    pod.stop().await;
    vec![Row::new("clients that disconnected", super::float(rounds * IN_FLIGHT * 2), "clients")]
}
