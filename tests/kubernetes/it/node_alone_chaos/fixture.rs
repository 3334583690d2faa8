//! Support for the chaos tests: their Pod, observations of it, and its processes.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

pub(super) use kubernetes_tests::node::container;
use kubernetes_tests::node::{Namespace, Node, condition};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::http_get;
pub(super) use crate::node_paired_pods::restarts;

/// The name of the sidecar's container.
pub(super) const SIDECAR: &str = "app-health-proxy";
/// The name of the application's container.
pub(super) const APP: &str = "app";

/// A Pod with the default liveness probe (three failures, 10 s apart) and a readiness probe every
/// second. Its log has a line for each request.
pub(super) fn pod(name: &str) -> Value {
    let start = "mkdir /www; echo yes > /www/ready; echo yes > /www/live; exec httpd -f -v -p 8080 -h /www";
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "terminationGracePeriodSeconds": 1, "automountServiceAccountToken": false, "enableServiceLinks": false,
            "containers": [{
                "name": APP, "image": "app-health-test/busybox:1", "command": ["sh", "-c", start],
                "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 1},
                "livenessProbe": {"httpGet": {"path": "/live", "port": 8080}},
            }],
        },
    })
}

/// The same Pod, with fields of the sidecar that override the template.
pub(super) fn pod_with(name: &str, sidecar: &Value) -> Value {
    let mut pod = pod(name);
    let mut declared = sidecar.clone();
    declared["name"] = SIDECAR.into();
    declared["image"] = "auto".into();
    pod["spec"]["containers"].as_array_mut().expect("containers").push(declared);
    pod
}

/// Creates the Pod and waits until it is ready.
pub(super) fn run(namespace: &Namespace, pod: &Value) -> Value {
    namespace.create(pod);
    namespace.pod_until(pod["metadata"]["name"].as_str().expect("a name"), "is ready", is_ready)
}

pub(super) fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready")
}

/// Returns whether the Pod has the sidecar, and asserts that its probes are rewritten exactly then.
pub(super) fn is_injected(pod: &Value) -> bool {
    let path = &pod["spec"]["containers"][0]["readinessProbe"]["httpGet"]["path"];
    let there = pod["spec"]["initContainers"][0]["name"] == SIDECAR;
    assert_eq!(there, path == "/app-health/app/readyz", "half an injection: {pod}");
    there
}

/// Returns the last transition time of the condition Ready. If it is the same later, readiness has
/// not changed in between.
pub(super) fn ready_since(pod: &Value) -> &str {
    let conditions = pod["status"]["conditions"].as_array().expect("conditions");
    let ready =
        conditions.iter().find(|each| each["type"] == "Ready").expect("the Pod has the condition Ready");
    ready["lastTransitionTime"].as_str().expect("a time")
}

/// Waits until a Pod has an event that starts with these words, since an event may arrive later
/// than its cause is visible. The kubelet sends at most 25 events about a Pod and then one in five
/// minutes, and each failed probe is an event.
pub(super) fn wait_for_event(namespace: &Namespace, name: &str, words: &str) {
    let told = || namespace.events(name).iter().any(|event| event.starts_with(words));
    namespace.node.until(&format!("an event of {name} says: {words}"), told);
}

/// Asserts that the application's container was not restarted.
pub(super) fn assert_untouched(before: &Value, after: &Value) {
    assert_eq!(container(before, APP)["containerID"], container(after, APP)["containerID"], "{after:#}");
    assert_eq!(restarts(after, APP), 0);
}

/// Returns the process id on the node of the first process of a container.
pub(super) fn process(node: &Node, pod: &Value, name: &str) -> Option<u32> {
    let container = container(pod, name)["containerID"].as_str()?.trim_start_matches("containerd://");
    let tasks = on_node(node, &["ctr", "--namespace", "k8s.io", "tasks", "list"]);
    let task = tasks.lines().find(|line| line.starts_with(container))?;
    task.split_whitespace().nth(1)?.parse().ok()
}

/// Returns the process id on the node of Envoy, which is a child of the sidecar's first process.
pub(super) fn envoy(node: &Node, pod: &Value) -> Option<u32> {
    let agent = process(node, pod, SIDECAR)?;
    let children = on_node(node, &["cat", &format!("/proc/{agent}/task/{agent}/children")]);
    let children = children.split_whitespace();
    let mut envoys =
        children.filter(|child| on_node(node, &["cat", &format!("/proc/{child}/comm")]).trim() == "envoy");
    envoys.next()?.parse().ok()
}

/// Sends a signal to a process on the node.
pub(super) fn signal(node: &Node, name: &str, process: Option<u32>) {
    let process = process.expect("the process exists").to_string();
    let status = node.command("sh").args(["-c", "kill -s $0 $1", name, &process]).status();
    assert!(status.expect("nsenter starts").success(), "SIG{name} to {process}");
}

fn on_node(node: &Node, words: &[&str]) -> String {
    let output = node.command(words[0]).args(&words[1..]).output().expect("nsenter starts");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns how many requests the application has received. It counts them in the log file on the
/// node, which works without the API server.
pub(super) fn requests(node: &Node, pod: &Value) -> usize {
    let text = |name: &str| pod["metadata"][name].as_str().expect("text").to_owned();
    let folder = format!("pods/{}_{}_{}/{APP}", text("namespace"), text("name"), text("uid"));
    let folder: PathBuf = node.folder.join("log/var").join(folder);
    let files = fs::read_dir(folder).expect("kubelet created the log directory");
    let logs = files.map(|file| fs::read_to_string(file.expect("an entry").path()).expect("text"));
    logs.map(|log| log.matches("response:").count()).sum()
}

/// Probes the application as kubelet does, and returns the status, or 0 without an HTTP
/// response.
pub(super) fn probe(pod: &Value, kind: &str) -> u16 {
    let ip = pod["status"]["podIP"].as_str().expect("the Pod has an IP address").parse().expect("an address");
    http_get(SocketAddr::new(ip, 15020), &format!("/app-health/app/{kind}")).status
}

/// Prints how long something took.
#[expect(clippy::print_stdout, reason = "the progress of a test that takes minutes")]
pub(super) fn print_elapsed(what: &str, begin: Instant) {
    println!("  {what}: {} ms", begin.elapsed().as_millis());
}

/// Prints an observation.
#[expect(clippy::print_stdout, reason = "the progress of a test that takes minutes")]
pub(super) fn print(what: &str) {
    println!("{what}");
}
