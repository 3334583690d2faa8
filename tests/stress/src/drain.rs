//! Draining: probes in flight are answered, and a drain of inbound listeners leaves the probe
//! listener open.

use std::time::Duration;

use futures_util::future::join;
use serde_json::json;

use super::{Limit, pod_at, post};
use kit::app::counted::{CountedApp, Habit};
use kit::load::{Load, ask, kubelet_request};
use kit::net;
use kit::report::Row;
use kit::wait::until;

/// Each round makes Envoy drain its inbound listeners while eight probes are in flight,
/// and one more probe follows. The last round drains all listeners.
///
/// # Panics
/// If a probe in flight fails, or the probe listener closes with the inbound ones.
pub async fn run(name: &str, rounds: u64) -> Vec<Row> {
    let ip = net::loopback();
    let Habit::Answer(answer) = Habit::status(200) else { panic!("a status is a response") };
    let app = CountedApp::start(ip, Habit::AnswerAfter(Duration::from_secs(1), answer));
    let table = json!({"/app-health/app/readyz": {"httpGet": {"port": app.port()}, "timeoutSeconds": 20}});
    let pod = pod_at(name, ip, &table, Limit::Shipped).await;
    let request = kubelet_request(pod.listener, "/app-health/app/readyz");
    let probes = Load { total: 8, at_once: 8, per_second: None };
    let drains = (0..rounds).map(|_| "/drain_listeners?inboundonly&graceful");
    let mut asked = 0;
    for drain in drains.chain(["/drain_listeners?graceful", "/drain_listeners"]) {
        let draining = async {
            asked += probes.total;
            until("the application has received the probes", async || app.requests() >= asked).await;
            post(&pod.envoy, drain).await;
        };
        let (tally, ()) = join(probes.run(|_| ask(None, pod.listener, &request)), draining).await;
        assert_eq!((tally.of(200), tally.broken), (probes.total, 0), "{drain}: {tally:?}");
        if drain != "/drain_listeners" {
            assert_eq!(ask(None, pod.listener, &request).await.status, 200, "after {drain}");
            asked += 1;
        }
    }
    pod.envoy.stop().await;
    vec![Row::new("probes in flight during a drain", super::float((rounds + 2) * probes.total), "probes")]
}
