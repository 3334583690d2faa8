//! What breaks around a Pod with the sidecar, and what becomes of the Pod: does the application go down with it, and is it said why?
//! What is tried, in order, on a node of its own; each step leaves the node whole.

mod again;
mod api_server;
mod application;
mod kubelet;
mod scene;
mod sidecar;
mod webhook;

use std::thread;

use kubernetes_tests::node::Node;
use scene::seen;

/// Name and deed.
type Step = (&'static str, fn(&Node));

/// Of a Pod or of the webhook.
const OF_PODS: [Step; 7] = [
    ("Envoy killed: the sidecar is restarted, the application is not", sidecar::envoy_killed),
    ("the agent killed: likewise", sidecar::agent_killed),
    ("out of memory: the sidecar ends, and says of what", sidecar::out_of_memory),
    ("the application hangs: 504, and it is restarted alone", application::hung),
    ("the webhook down, Fail: who opted in waits, the rest lives", webhook::down_with_fail),
    ("the webhook down, Ignore: raw probes", webhook::down_with_ignore),
    ("all replicas of the webhook killed: they come back", webhook::killed),
];
/// More than a minute, in which next to nothing happens: beside the others.
const AGAIN: Step =
    ("Envoy killed again and again, meanwhile: the back-off, and the application", again::again);
/// Of the node, and so of all Pods.
const OF_THE_NODE: [Step; 2] = [
    ("the API server killed: probes go on, and a sidecar is restarted", api_server::restarted),
    ("kubelet killed: the Pods run on", kubelet::restarted),
];

#[test]
#[ignore = "needs a Kubernetes node: ./justw test-kubernetes"]
fn chaos() {
    let node = Node::start("chaos");
    node.install_webhook();
    thread::scope(|scope| {
        let again = scope.spawn(|| {
            node.enter();
            take(&AGAIN, &node);
        });
        OF_PODS.iter().for_each(|step| take(step, &node));
        again.join().expect("what it says stands above");
    });
    OF_THE_NODE.iter().for_each(|step| take(step, &node));
}

fn take((name, step): &Step, node: &Node) {
    seen(name);
    step(node);
}
