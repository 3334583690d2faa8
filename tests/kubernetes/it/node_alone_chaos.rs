//! Tests of failures around a Pod with the sidecar: whether the application keeps running, and
//! whether Kubernetes reports the cause. The steps run in order on their own node, and each one
//! leaves the node in working order.

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

/// The name of a step, and the function that runs it.
type Step = (&'static str, fn(&Node));

/// Failures of a Pod or of the webhook.
const OF_PODS: [Step; 7] = [
    ("Envoy killed: the sidecar is restarted, the application is not", sidecar::envoy_killed),
    ("the agent killed: the sidecar is restarted, the application is not", sidecar::agent_killed),
    ("out of memory: the sidecar is killed, with the reason OOMKilled", sidecar::out_of_memory),
    ("the application hangs: 504, and only the application is restarted", application::hung),
    ("the webhook down, Fail: Pods that opted in wait, other Pods start", webhook::down_with_fail),
    ("the webhook down, Ignore: Pods start with their original probes", webhook::down_with_ignore),
    ("all replicas of the webhook killed: kubelet restarts them", webhook::killed),
];
/// Takes more than a minute and needs few resources, so it runs concurrently with the other steps.
const AGAIN: Step = ("Envoy killed repeatedly, meanwhile: the back-off, and the application", again::again);
/// Failures of the node, which affect all Pods.
const OF_THE_NODE: [Step; 2] = [
    ("the API server killed: probes continue, and a sidecar is restarted", api_server::restarted),
    ("kubelet killed: the Pods keep running", kubelet::restarted),
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
        again.join().expect("the concurrent step succeeds");
    });
    OF_THE_NODE.iter().for_each(|step| take(step, &node));
}

fn take((name, step): &Step, node: &Node) {
    seen(name);
    step(node);
}
