//! The sidecar's processes are killed.

use kubernetes_tests::node::Node;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::scene::{
    APP, SIDECAR, ask, assert_untouched, container, envoy, is_ready, pod, pod_with, process, restarts, run,
    seen, signal, since, took,
};

pub(super) fn envoy_killed(node: &Node) {
    let end = killed(node, "envoy-killed", envoy);
    assert_eq!(end["exitCode"], 70, "{end}");
    let message = end["message"].as_str().unwrap_or_default();
    assert!(
        message.starts_with("Envoy exited unexpectedly"),
        "the termination message must contain the cause: {end}"
    );
}

/// The agent is PID 1 of the container, so Envoy is killed with it and no termination message is
/// written.
pub(super) fn agent_killed(node: &Node) {
    let end = killed(node, "agent-killed", |node, pod| process(node, pod, SIDECAR));
    assert_eq!(end["exitCode"], 137, "{end}");
}

/// Kills one of the sidecar's processes, and returns the container's last terminated state.
fn killed(node: &Node, name: &str, who: fn(&Node, &Value) -> Option<u32>) -> Value {
    let space = node.space(name, true);
    let before = run(&space, &pod("web"));
    let begin = Instant::now();
    signal(node, "KILL", who(node, &before));
    let is_back = |pod: &Value| restarts(pod, SIDECAR) == 1 && is_ready(pod);
    let after = space.pod_until("web", "is ready again", is_back);
    took("ready again", begin);
    assert_untouched(&before, &after);
    assert_ne!(since(&before), since(&after), "the Pod must be unready while Envoy is down");
    space.done(&["exec", "web", "-c", APP, "--", "rm", "/www/ready"], "");
    space.pod_until("web", "is unready", |pod| !is_ready(pod));
    assert_eq!(ask(&after, "readyz"), 404, "the probe must report the application's status");
    container(&after, SIDECAR)["lastState"]["terminated"].clone()
}

/// The memory limit is too low for Envoy. The application does not start, because the sidecar does
/// not become ready.
pub(super) fn out_of_memory(node: &Node) {
    let space = node.space("memory", true);
    let limited = json!({"resources": {"requests": {"memory": "16Mi"}, "limits": {"memory": "16Mi"}}});
    space.create(&pod_with("web", &limited));
    let ended = |pod: &Value| container(pod, SIDECAR)["lastState"]["terminated"].is_object();
    let pod = space.pod_until("web", "has a sidecar that was terminated", ended);
    let end = &container(&pod, SIDECAR)["lastState"]["terminated"];
    seen(&format!("  {end}"));
    assert_eq!(end["reason"], "OOMKilled", "{end}");
    assert!(container(&pod, APP)["state"]["waiting"].is_object(), "{pod:#}");
}
