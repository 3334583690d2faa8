//! The kubelet is killed and restarted.

use kubernetes_tests::node::Node;
use tokio::time::Instant;

use super::fixture::{
    SIDECAR, assert_untouched, is_injected, pod, print, print_elapsed, ready_since, requests, restarts, run,
};
use crate::wait_until;

/// The effect is the same on a Pod with the sidecar and on one without.
pub(super) fn restarted(node: &Node) {
    let (namespace, baseline) =
        (node.create_namespace("kubelet", true), node.create_namespace("kubelet", false));
    let before = [run(&namespace, &pod("web")), run(&baseline, &pod("web"))];
    // A restarted kubelet treats a container that has run for less than 10 s as new, and so as
    // unready until its first probe.
    wait_until("fifteen seconds of readiness", || before.iter().all(|pod| requests(node, pod) >= 15));
    node.stop_kubelet();
    node.start_kubelet();
    let begin = Instant::now();
    let counts = before.each_ref().map(|pod| requests(node, pod));
    wait_until("five probes by the new kubelet", || {
        before.iter().zip(&counts).all(|(pod, count)| requests(node, pod) >= count + 5)
    });
    assert!(is_injected(&run(&namespace, &pod("later"))), "a new Pod must be injected");
    print_elapsed("and a new Pod is ready", begin);
    let after = [namespace.pod("web"), baseline.pod("web")];
    for (before, after) in before.iter().zip(&after) {
        assert_untouched(before, after);
        print(&format!("  ready since {}, then since {}", ready_since(before), ready_since(after)));
        assert_eq!(ready_since(before), ready_since(after), "the Pod must never be unready");
    }
    assert_eq!(restarts(&after[0], SIDECAR), 0);
}
