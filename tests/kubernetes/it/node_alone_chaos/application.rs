//! The application hangs.

use kubernetes_tests::node::Node;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::fixture::{
    APP, SIDECAR, is_ready, pod, print_elapsed, process, restarts, run, signal, wait_for_event,
};

/// The application is stopped by SIGSTOP. Its port still accepts connections, so a `tcpSocket`
/// probe would succeed, but it sends no response.
pub(super) fn hung(node: &Node) {
    let namespace = node.create_namespace("hung", true);
    let mut hangs = pod("web");
    let app = &mut hangs["spec"]["containers"][0];
    app["livenessProbe"]["periodSeconds"] = 3.into();
    app["readinessProbe"] =
        json!({"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 3, "failureThreshold": 1});
    let before = run(&namespace, &hangs);
    let begin = Instant::now();
    signal(node, "STOP", process(node, &before, APP));
    namespace.pod_until("web", "is unready", |pod| !is_ready(pod));
    print_elapsed("unready", begin);
    let is_back = |pod: &Value| restarts(pod, APP) == 1 && is_ready(pod);
    let after = namespace.pod_until("web", "is ready again", is_back);
    print_elapsed("restarted and ready again", begin);
    assert_eq!(restarts(&after, SIDECAR), 0);
    for expected in [
        "Readiness probe failed: HTTP probe failed with statuscode: 504",
        "Liveness probe failed: HTTP probe failed with statuscode: 504",
        "Container app failed liveness probe, will be restarted",
    ] {
        wait_for_event(&namespace, "web", expected);
    }
}
