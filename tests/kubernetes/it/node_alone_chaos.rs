//! Tests of failures around a Pod with the sidecar: whether the application keeps running, and
//! whether Kubernetes reports the cause. The steps run in order on their own node, and each one
//! leaves the node in working order.

mod api_server;
mod application;
mod crash_loop;
mod fixture;
mod kubelet;
mod sidecar;
mod webhook;

use std::thread;

use fixture::print;
use kubernetes_tests::node::Node;

/// The name of a step, and the function that runs it.
type Step = (&'static str, fn(&Node));

/// Failures of a Pod or of the webhook.
const POD_STEPS: [Step; 8] = [
    ("Envoy killed, with `never`: the sidecar is restarted, the application is not", sidecar::envoy_killed),
    ("Envoy hangs: the agent replaces it, and no container is restarted", sidecar::envoy_hung),
    ("the agent killed: the sidecar is restarted, the application is not", sidecar::agent_killed),
    ("out of memory: the sidecar is killed, with the reason OOMKilled", sidecar::out_of_memory),
    ("the application hangs: 504, and only the application is restarted", application::hung),
    ("the webhook down, Fail: Pods that opted in wait, other Pods start", webhook::down_with_fail),
    ("the webhook down, Ignore: Pods start with their original probes", webhook::down_with_ignore),
    ("all replicas of the webhook killed: kubelet restarts them", webhook::killed),
];
/// Takes more than a minute and needs few resources, so it runs concurrently with the other steps.
const CRASH_LOOP: Step =
    ("Envoy killed repeatedly, meanwhile: the back-off, and the application", crash_loop::crash_loop);
/// Failures of the node, which affect all Pods.
const NODE_STEPS: [Step; 2] = [
    ("the API server killed: probes continue, and a sidecar is restarted", api_server::restarted),
    ("kubelet killed: the Pods keep running", kubelet::restarted),
];

#[test]
#[ignore = "needs a Kubernetes node: ./justw test-kubernetes"]
fn chaos() {
    let node = Node::start("chaos");
    node.install_webhook();
    thread::scope(|scope| {
        let crash_loop = scope.spawn(|| {
            node.enter();
            run_step(&CRASH_LOOP, &node);
        });
        POD_STEPS.iter().for_each(|step| run_step(step, &node));
        crash_loop.join().expect("the concurrent step succeeds");
    });
    NODE_STEPS.iter().for_each(|step| run_step(step, &node));
}

fn run_step((name, step): &Step, node: &Node) {
    print(name);
    step(node);
}
