//! The webhook is away.

use kubernetes_tests::node::{Node, SYSTEM, Space};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::scene::{
    APP, assert_untouched, is_injected, is_ready, pod, process, restarts, run, seen, signal, took,
};
use crate::within;

const CONFIGURATION: &str = "mutatingwebhookconfiguration/app-health";
const DEPLOYMENT: &str = "deployment/app-health-webhook";

pub(super) fn down_with_fail(node: &Node) {
    let (space, plain) = (node.space("waits", true), node.space("plain", false));
    let before = run(&space, &pod("runs"));
    scale_to_nothing(node);

    let refusal = dry_run(&space, &pod("late")).expect_err("it is refused");
    seen(&format!("  {}", refusal.trim()));
    assert!(refusal.contains("failed calling webhook \"namespace.webhook.app-health.io\""), "{refusal}");
    let mut labelled = pod("labelled");
    labelled["metadata"]["labels"]["sidecar.istio.io/inject"] = "true".into();
    let refusal = dry_run(&plain, &labelled).expect_err("it is refused");
    assert!(refusal.contains("failed calling webhook \"pod.webhook.app-health.io\""), "{refusal}");
    assert!(!is_injected(&run(&plain, &pod("web"))), "who has not opted in starts as ever");
    let mut system = labelled;
    system["metadata"]["namespace"] = "kube-system".into();
    let output = node.cluster.kubectl(&["create", "--dry-run=server", "-f", "-"], &system.to_string());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    space.create(&deployment("shop"));
    let shop = || node.cluster.get(&["--namespace", &space.name, "deployment", "shop"]);
    node.until("the Deployment says why it has no Pods", || {
        let conditions = shop()["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let failure = conditions.iter().find(|each| each["type"] == "ReplicaFailure");
        let message = failure.and_then(|failure| failure["message"].as_str()).unwrap_or_default();
        message.contains("failed calling webhook \"namespace.webhook.app-health.io\"")
    });
    assert_untouched(&before, &space.pod("runs"));

    let begin = Instant::now();
    scale(node, 2);
    took("the webhook is back", begin);
    node.until("the Deployment's Pods are there", || shop()["status"]["availableReplicas"] == 2);
    took("the Deployment's Pods have come by themselves", begin);
    let pods = node.cluster.get(&["--namespace", &space.name, "pod", "--selector", "app=shop"]);
    assert!(pods["items"].as_array().expect("a list").iter().all(is_injected), "{pods:#}");
    let after = space.pod("runs");
    assert_untouched(&before, &after);
    assert!(is_ready(&after));
}

pub(super) fn down_with_ignore(node: &Node) {
    let space = node.space("raw", true);
    let policy = |value: &str| {
        let patch = |index| json!({"op": "replace", "path": format!("/webhooks/{index}/failurePolicy"), "value": value});
        let patch = Value::from([0, 1].map(patch).to_vec()).to_string();
        node.cluster.done(&["patch", CONFIGURATION, "--type=json", "--patch", &patch], "");
    };
    policy("Ignore");
    scale_to_nothing(node);
    within("Ignore is in force", 60, || dry_run(&space, &pod("raw")).is_ok());
    assert!(!is_injected(&run(&space, &pod("raw"))), "it starts with raw probes");
    policy("Fail");
    within("Fail is in force", 60, || dry_run(&space, &pod("waits")).is_err());
    scale(node, 2);
    assert!(is_injected(&run(&space, &pod("injected"))));
}

pub(super) fn killed(node: &Node) {
    let space = node.space("replicas", true);
    let replicas = || {
        let list = node.cluster.get(&[
            "--namespace",
            SYSTEM,
            "pod",
            "--selector",
            "app.kubernetes.io/name=app-health-webhook",
        ]);
        list["items"].as_array().expect("a list").clone()
    };
    let processes: Vec<_> = replicas().iter().map(|pod| process(node, pod, "webhook")).collect();
    assert_eq!(processes.len(), 2);
    processes.into_iter().for_each(|process| signal(node, "KILL", process));
    let begin = Instant::now();
    node.until("both are back", || {
        replicas().iter().all(|pod| restarts(pod, "webhook") == 1 && is_ready(pod))
    });
    took("both are back", begin);
    let pod = run(&space, &pod("web"));
    assert!(is_injected(&pod) && restarts(&pod, APP) == 0);
}

/// What the API server would make of a Pod, or why it refuses it.
fn dry_run(space: &Space, pod: &Value) -> Result<Value, String> {
    let arguments = ["--namespace", &space.name, "create", "--dry-run=server", "-o", "json", "-f", "-"];
    let output = space.node.cluster.kubectl(&arguments, &pod.to_string());
    match output.status.success() {
        true => Ok(serde_json::from_slice(&output.stdout).expect("JSON")),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Waits until nobody answers any more, and until the API server knows it.
fn scale_to_nothing(node: &Node) {
    node.cluster.done(&["scale", "--namespace", SYSTEM, DEPLOYMENT, "--replicas=0"], "");
    let pods = ["--namespace", SYSTEM, "pod", "--selector", "app.kubernetes.io/name=app-health-webhook"];
    node.until("the webhook is gone", || node.cluster.get(&pods)["items"] == json!([]));
}

fn scale(node: &Node, replicas: u32) {
    let replicas = format!("--replicas={replicas}");
    node.cluster.done(&["scale", "--namespace", SYSTEM, DEPLOYMENT, &replicas], "");
    node.cluster.done(&["rollout", "status", "--namespace", SYSTEM, DEPLOYMENT, "--timeout", "60s"], "");
}

fn deployment(name: &str) -> Value {
    let pod = pod(name);
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod["spec"]},
        },
    })
}
