//! The sidecar's processes are killed.

use kubernetes_tests::node::Node;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::fixture::{
    APP, SIDECAR, assert_untouched, container, envoy, is_ready, pod, pod_with, print, print_elapsed, probe,
    process, ready_since, restarts, run, signal,
};

pub(super) fn envoy_killed(node: &Node) {
    let ends = json!({"env": [{"name": "APP_HEALTH_ENVOY_RESTART", "value": "never"}]});
    let end = killed(node, "envoy-killed", &pod_with("web", &ends), envoy);
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
    let end = killed(node, "agent-killed", &pod("web"), |node, pod| process(node, pod, SIDECAR));
    assert_eq!(end["exitCode"], 137, "{end}");
}

/// Kills one of the sidecar's processes, and returns the container's last terminated state.
fn killed(node: &Node, name: &str, pod: &Value, who: fn(&Node, &Value) -> Option<u32>) -> Value {
    let namespace = node.create_namespace(name, true);
    let before = run(&namespace, pod);
    let begin = Instant::now();
    signal(node, "KILL", who(node, &before));
    let is_back = |pod: &Value| restarts(pod, SIDECAR) == 1 && is_ready(pod);
    let after = namespace.pod_until("web", "is ready again", is_back);
    print_elapsed("ready again", begin);
    assert_untouched(&before, &after);
    assert_ne!(ready_since(&before), ready_since(&after), "the Pod must be unready while Envoy is down");
    namespace.kubectl_ok(&["exec", "web", "-c", APP, "--", "rm", "/www/ready"], "");
    namespace.pod_until("web", "is unready", |pod| !is_ready(pod));
    assert_eq!(probe(&after, "readyz"), 404, "the probe must report the application's status");
    container(&after, SIDECAR)["lastState"]["terminated"].clone()
}

/// The agent replaces a hung Envoy before the liveness probe of the application has failed three
/// times, and kubelet restarts neither container.
pub(super) fn envoy_hung(node: &Node) {
    let namespace = node.create_namespace("envoy-hung", true);
    let before = run(&namespace, &pod("web"));
    let old = envoy(node, &before);
    let begin = Instant::now();
    signal(node, "STOP", old);
    let after = namespace.pod_until("web", "has another Envoy, which answers probes", |pod| {
        let new = envoy(node, pod);
        new.is_some() && new != old && probe(pod, "livez") == 200
    });
    print_elapsed("another Envoy answers probes", begin);
    assert_untouched(&before, &after);
    assert_eq!(restarts(&after, SIDECAR), 0);
}

/// The memory limit is too low for Envoy. The application does not start, because the sidecar does
/// not become ready.
pub(super) fn out_of_memory(node: &Node) {
    let namespace = node.create_namespace("memory", true);
    let limited = json!({"resources": {"requests": {"memory": "16Mi"}, "limits": {"memory": "16Mi"}}});
    namespace.create(&pod_with("web", &limited));
    let ended = |pod: &Value| container(pod, SIDECAR)["lastState"]["terminated"].is_object();
    let pod = namespace.pod_until("web", "has a sidecar that was terminated", ended);
    let end = &container(&pod, SIDECAR)["lastState"]["terminated"];
    print(&format!("  {end}"));
    assert_eq!(end["reason"], "OOMKilled", "{end}");
    assert!(container(&pod, APP)["state"]["waiting"].is_object(), "{pod:#}");
}
