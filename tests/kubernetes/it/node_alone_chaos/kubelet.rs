//! The kubelet is killed and restarted.

use kubernetes_tests::node::Node;
use tokio::time::Instant;

use super::scene::{SIDECAR, assert_untouched, is_injected, pod, requests, restarts, run, seen, since, took};
use crate::within;

/// The effect is the same on a Pod with the sidecar and on one without.
pub(super) fn restarted(node: &Node) {
    let (space, plain) = (node.space("kubelet", true), node.space("kubelet", false));
    let before = [run(&space, &pod("web")), run(&plain, &pod("web"))];
    // A restarted kubelet treats a container that has run for less than 10 s as new, and so as
    // unready until its first probe.
    within("fifteen seconds of readiness", 90, || before.iter().all(|pod| requests(node, pod) >= 15));
    node.stop_kubelet();
    node.start_kubelet();
    let begin = Instant::now();
    let counts = before.each_ref().map(|pod| requests(node, pod));
    within("five probes by the new kubelet", 60, || {
        before.iter().zip(&counts).all(|(pod, count)| requests(node, pod) >= count + 5)
    });
    assert!(is_injected(&run(&space, &pod("later"))), "a new Pod must be injected");
    took("and a new Pod is ready", begin);
    let after = [space.pod("web"), plain.pod("web")];
    for (before, after) in before.iter().zip(&after) {
        assert_untouched(before, after);
        seen(&format!("  ready since {}, then since {}", since(before), since(after)));
        assert_eq!(since(before), since(after), "the Pod must never be unready");
    }
    assert_eq!(restarts(&after[0], SIDECAR), 0);
}
