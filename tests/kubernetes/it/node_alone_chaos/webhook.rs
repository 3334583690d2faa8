//! The webhook is unavailable.

use kubernetes_tests::node::{Namespace, Node, SYSTEM};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::fixture::{
    APP, assert_untouched, is_injected, is_ready, pod, print, print_elapsed, process, restarts, run, signal,
};
use crate::wait_until;

const CONFIGURATION: &str = "mutatingwebhookconfiguration/app-health";
const DEPLOYMENT: &str = "deployment/app-health-webhook";

pub(super) fn down_with_fail(node: &Node) {
    let (namespace, baseline) =
        (node.create_namespace("waits", true), node.create_namespace("baseline", false));
    let before = run(&namespace, &pod("runs"));
    scale_to_nothing(node);

    let refusal = dry_run(&namespace, &pod("late")).expect_err("the API server must reject the Pod");
    print(&format!("  {}", refusal.trim()));
    assert!(refusal.contains("failed calling webhook \"namespace.webhook.app-health.io\""), "{refusal}");
    let mut labelled = pod("labelled");
    labelled["metadata"]["labels"]["sidecar.istio.io/inject"] = "true".into();
    let started = dry_run(&baseline, &labelled);
    assert!(
        started.is_ok_and(|pod| !is_injected(&pod)),
        "a Pod with Istio's label must start in a namespace that has not opted in"
    );
    assert!(
        !is_injected(&run(&baseline, &pod("web"))),
        "a Pod that has not opted in must start without the sidecar"
    );
    let mut system = labelled;
    system["metadata"]["namespace"] = "kube-system".into();
    let output = node.cluster.kubectl(&["create", "--dry-run=server", "-f", "-"], &system.to_string());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    namespace.create(&deployment("shop"));
    let shop = || node.cluster.get(&["--namespace", &namespace.name, "deployment", "shop"]);
    node.until("the Deployment's condition contains the cause", || {
        let conditions = shop()["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let failure = conditions.iter().find(|each| each["type"] == "ReplicaFailure");
        let message = failure.and_then(|failure| failure["message"].as_str()).unwrap_or_default();
        message.contains("failed calling webhook \"namespace.webhook.app-health.io\"")
    });
    assert_untouched(&before, &namespace.pod("runs"));

    let begin = Instant::now();
    scale(node, 2);
    print_elapsed("the webhook is available again", begin);
    node.until("the Deployment's Pods are available", || shop()["status"]["availableReplicas"] == 2);
    print_elapsed("the Deployment's Pods were created without intervention", begin);
    let pods = node.cluster.get(&["--namespace", &namespace.name, "pod", "--selector", "app=shop"]);
    assert!(pods["items"].as_array().expect("a list").iter().all(is_injected), "{pods:#}");
    let after = namespace.pod("runs");
    assert_untouched(&before, &after);
    assert!(is_ready(&after));
}

pub(super) fn down_with_ignore(node: &Node) {
    let namespace = node.create_namespace("raw", true);
    let policy = |value: &str| {
        let patch =
            json!([{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": value}]).to_string();
        node.cluster.kubectl_ok(&["patch", CONFIGURATION, "--type=json", "--patch", &patch], "");
    };
    policy("Ignore");
    scale_to_nothing(node);
    wait_until("Ignore is in force", || dry_run(&namespace, &pod("raw")).is_ok());
    assert!(!is_injected(&run(&namespace, &pod("raw"))), "the Pod must start with its original probes");
    policy("Fail");
    wait_until("Fail is in force", || dry_run(&namespace, &pod("waits")).is_err());
    scale(node, 2);
    assert!(is_injected(&run(&namespace, &pod("injected"))));
}

pub(super) fn killed(node: &Node) {
    let namespace = node.create_namespace("replicas", true);
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
    node.until("both replicas are ready again", || {
        replicas().iter().all(|pod| restarts(pod, "webhook") == 1 && is_ready(pod))
    });
    print_elapsed("both replicas are ready again", begin);
    let pod = run(&namespace, &pod("web"));
    assert!(is_injected(&pod) && restarts(&pod, APP) == 0);
}

/// Creates a Pod with `--dry-run=server`, and returns it, or the error of the API server.
fn dry_run(namespace: &Namespace, pod: &Value) -> Result<Value, String> {
    let arguments = ["--namespace", &namespace.name, "create", "--dry-run=server", "-o", "json", "-f", "-"];
    let output = namespace.node.cluster.kubectl(&arguments, &pod.to_string());
    match output.status.success() {
        true => Ok(serde_json::from_slice(&output.stdout).expect("JSON")),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Scales the webhook to zero and waits until its Pods are deleted.
fn scale_to_nothing(node: &Node) {
    node.cluster.kubectl_ok(&["scale", "--namespace", SYSTEM, DEPLOYMENT, "--replicas=0"], "");
    let pods = ["--namespace", SYSTEM, "pod", "--selector", "app.kubernetes.io/name=app-health-webhook"];
    node.until("the webhook has no Pods", || node.cluster.get(&pods)["items"] == json!([]));
}

fn scale(node: &Node, replicas: u32) {
    let replicas = format!("--replicas={replicas}");
    node.cluster.kubectl_ok(&["scale", "--namespace", SYSTEM, DEPLOYMENT, &replicas], "");
    node.cluster
        .kubectl_ok(&["rollout", "status", "--namespace", SYSTEM, DEPLOYMENT, "--timeout", "60s"], "");
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
