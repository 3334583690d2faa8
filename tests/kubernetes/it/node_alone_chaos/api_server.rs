//! The API server is killed and restarted.

use kubernetes_tests::node::Node;
use tokio::time::Instant;

use super::scene::{
    SIDECAR, ask, assert_untouched, envoy, is_injected, is_ready, pod, requests, restarts, run, signal,
    since, took,
};
use crate::within;

pub(super) fn restarted(node: &Node) {
    let space = node.space("away", true);
    let mut lives = pod("lives");
    lives["spec"]["containers"][0]["livenessProbe"]["periodSeconds"] = 1.into();
    let [lives, hurt] = [lives, pod("hurt")].map(|pod| run(&space, &pod));
    node.cluster.stop_api_server();

    let before = requests(node, &lives);
    within("twenty probes without an API server", 60, || requests(node, &lives) >= before + 20);
    let old = envoy(node, &hurt);
    signal(node, "KILL", old);
    within("Envoy ends", 10, || ask(&hurt, "livez") != 200);
    within("kubelet restarts a sidecar without an API server", 60, || ask(&hurt, "livez") == 200);
    let before = requests(node, &hurt);
    within("three probes of the application behind it", 60, || requests(node, &hurt) >= before + 3);

    let begin = Instant::now();
    node.cluster.start_api_server();
    took("the API server is available again", begin);
    let is_told = |pod: &serde_json::Value| restarts(pod, SIDECAR) == 1 && is_ready(pod);
    assert_untouched(
        &hurt,
        &space.pod_until("hurt", "is ready, and shows one restart of the sidecar", is_told),
    );
    let after = space.pod_until("lives", "is ready", is_ready);
    assert_untouched(&lives, &after);
    assert_eq!(
        (restarts(&after, SIDECAR), since(&after)),
        (0, since(&lives)),
        "the Pod must never be unready"
    );
    assert!(is_injected(&run(&space, &pod("later"))), "a new Pod must be injected");
}
