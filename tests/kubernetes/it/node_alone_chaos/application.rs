//! The application hangs.

use kubernetes_tests::node::Node;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::scene::{APP, SIDECAR, assert_told, is_ready, pod, process, restarts, run, signal, took};

/// The application is stopped by SIGSTOP. Its port still accepts connections, so a `tcpSocket`
/// probe would succeed, but it sends no response.
pub(super) fn hung(node: &Node) {
    let space = node.space("hung", true);
    let mut hangs = pod("web");
    let app = &mut hangs["spec"]["containers"][0];
    app["livenessProbe"]["periodSeconds"] = 3.into();
    app["readinessProbe"] =
        json!({"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 3, "failureThreshold": 1});
    let before = run(&space, &hangs);
    let begin = Instant::now();
    signal(node, "STOP", process(node, &before, APP));
    space.pod_until("web", "is unready", |pod| !is_ready(pod));
    took("unready", begin);
    let is_back = |pod: &Value| restarts(pod, APP) == 1 && is_ready(pod);
    let after = space.pod_until("web", "is ready again", is_back);
    took("restarted and ready again", begin);
    assert_eq!(restarts(&after, SIDECAR), 0);
    for expected in [
        "Readiness probe failed: HTTP probe failed with statuscode: 504",
        "Liveness probe failed: HTTP probe failed with statuscode: 504",
        "Container app failed liveness probe, will be restarted",
    ] {
        assert_told(&space, "web", expected);
    }
}
