//! The API server is killed and restarted.

use kubernetes_tests::node::Node;
use serde_json::json;
use tokio::time::Instant;

use super::fixture::{
    SIDECAR, assert_untouched, envoy, is_injected, is_ready, pod, pod_with, print_elapsed, probe,
    ready_since, requests, restarts, run, signal,
};
use crate::wait_until;

pub(super) fn restarted(node: &Node) {
    let namespace = node.create_namespace("away", true);
    let mut lives = pod("lives");
    lives["spec"]["containers"][0]["livenessProbe"]["periodSeconds"] = 1.into();
    // The container ends with its Envoy, so that kubelet restarts it.
    let ends = json!({"env": [{"name": "APP_HEALTH_ENVOY_RESTART", "value": "never"}]});
    let [lives, hurt] = [lives, pod_with("hurt", &ends)].map(|pod| run(&namespace, &pod));
    node.cluster.stop_api_server();

    let before = requests(node, &lives);
    wait_until("twenty probes without an API server", || requests(node, &lives) >= before + 20);
    let old = envoy(node, &hurt);
    signal(node, "KILL", old);
    wait_until("Envoy ends", || probe(&hurt, "livez") != 200);
    wait_until("kubelet restarts a sidecar without an API server", || probe(&hurt, "livez") == 200);
    let before = requests(node, &hurt);
    wait_until("three probes of the application behind it", || requests(node, &hurt) >= before + 3);

    let begin = Instant::now();
    node.cluster.start_api_server();
    print_elapsed("the API server is available again", begin);
    let is_told = |pod: &serde_json::Value| restarts(pod, SIDECAR) == 1 && is_ready(pod);
    assert_untouched(
        &hurt,
        &namespace.pod_until("hurt", "is ready, and shows one restart of the sidecar", is_told),
    );
    let after = namespace.pod_until("lives", "is ready", is_ready);
    assert_untouched(&lives, &after);
    assert_eq!(
        (restarts(&after, SIDECAR), ready_since(&after)),
        (0, ready_since(&lives)),
        "the Pod must never be unready"
    );
    assert!(is_injected(&run(&namespace, &pod("later"))), "a new Pod must be injected");
}
