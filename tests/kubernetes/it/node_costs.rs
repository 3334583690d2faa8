//! Measures the cost of the sidecar on a node: time until a Pod is ready, and memory; and the time of
//! `explain`. The test prints the figures, and its limits are wide enough for a busy machine.

use kit::docker::archive::SIDECAR;
use kit::envoy::workspace;
use kit::report::{self, Row, median, quantile};
use kit::terminal::say;
use kubernetes_tests::node::{Namespace, Node, Watch, condition};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::node_paired_pods::{PairedPods, wait};
use crate::{node_explain, node_kinds, node_start};

const MIB: f64 = (1 << 20) as f64;
/// How often `explain` is measured.
const EXPLANATIONS: usize = 20;

/// Returns the resident memory of a program in a Pod, in MiB.
fn memory(namespace: &Namespace<'_>, pod: &Value, program: &str) -> f64 {
    let id = pod["metadata"]["uid"].as_str().expect("a Pod has one");
    let script = r#"for process in /proc/[0-9]*; do
        grep -q "$1" "$process/cgroup" && [ "$(cat "$process/comm")" = "$2" ] && grep VmRSS: "$process/status"
    done 2>/dev/null; true"#;
    // The kernel truncates a process name to 15 bytes.
    let comm = &program[..program.len().min(15)];
    let output =
        namespace.node.command("sh").args(["-c", script, "sh", id, comm]).output().expect("nsenter starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let kib = text.split_whitespace().nth(1).and_then(|number| number.parse::<f64>().ok());
    kib.unwrap_or_else(|| panic!("no {program} in Pod {id}: {text}")) * 1024.0 / MIB
}

/// Renders the bootstrap without the filter, and with a TCP admin address.
fn bootstrap_without_filter() -> String {
    let arguments = ["bootstrap", "--instance-ip", "192.0.2.7", "--admin", "127.0.0.1:15000"];
    let rendered = wait(kit::agent::run(&arguments, &[]));
    let mut bootstrap: Value = serde_json::from_str(&rendered.stdout).expect("JSON");
    let manager = "/static_resources/listeners/0/filter_chains/0/filters/1/typed_config";
    let manager = bootstrap.pointer_mut(manager).expect("the probe listener");
    let filters = manager["http_filters"].as_array_mut().expect("filters");
    let before = filters.len();
    filters.retain(|filter| filter["name"] != "envoy.filters.http.wasm");
    assert_eq!(filters.len(), before - 1, "the filter was there");
    for route in manager["route_config"]["virtual_hosts"][0]["routes"].as_array_mut().expect("routes") {
        route.as_object_mut().expect("an object").remove("typed_per_filter_config");
    }
    bootstrap.to_string()
}

/// Starts a Pod that contains only the agent and an Envoy without the filter.
fn without_filter(namespace: &Namespace<'_>, watch: &Watch) -> Value {
    let data = json!({"bootstrap.json": bootstrap_without_filter()});
    namespace.create(
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bootstrap"}, "data": data}),
    );
    let container = json!({
        "name": "proxy", "image": SIDECAR, "args": ["run", "--envoy-config", "/config/bootstrap.json", "--data-path", "off"],
        "readinessProbe": {"httpGet": {"path": "/healthz/ready", "port": 15021}, "periodSeconds": 1},
        "volumeMounts": [{"name": "config", "mountPath": "/config"}, {"name": "state", "mountPath": "/var/run/app-health"}],
    });
    let mut pod = node_kinds::pod("bare", &[container]);
    pod["spec"]["volumes"] = json!([{"name": "config", "configMap": {"name": "bootstrap"}}, {"name": "state", "emptyDir": {"medium": "Memory"}}]);
    namespace.create(&pod);
    namespace.wait_until(watch, "bare", "is ready", |pod| condition(pod, "Ready"));
    watch.last("bare")
}

/// Returns the time of `app-health explain` for a healthy Pod, from the start of the process to its end.
fn explanations(namespace: &Namespace<'_>, pod: &str) -> [Row; 2] {
    let mut seconds = Vec::new();
    for _ in 0..EXPLANATIONS {
        let begin = Instant::now();
        let (code, report) = node_explain::explain(namespace, &format!("pod/{pod}"));
        seconds.push(begin.elapsed().as_secs_f64());
        assert_eq!(code, Some(0), "{report:#}");
    }
    let row = |what: &str, value| Row::new(format!("app-health explain, {what}"), value, "s");
    [row("median", median(&seconds)), row("slowest", quantile(&seconds, 1.0)).at_most(1.0)]
}

#[test]
#[ignore = "needs a Kubernetes node: ./justw test-kubernetes"]
fn node_alone_costs() {
    let paired_pods = PairedPods::new(Node::shared(), "costs");
    let mut rows = node_start::measure(&paired_pods);
    let [baseline, sidecar] = &paired_pods.sides;
    sidecar.namespace.create(&node_start::pod("memory"));
    sidecar.until("memory", "is ready", |pod| condition(pod, "Ready"));
    let with = sidecar.watch.last("memory");
    let bare = without_filter(&baseline.namespace, &baseline.watch);
    let memory = |name: &str, pod: &Value, program: &str| {
        Row::new(name, memory(&baseline.namespace, pod, program), "MiB")
    };
    rows.push(memory("memory of the agent", &with, "app-health-agent"));
    rows.push(memory("memory of Envoy with the filter", &with, "envoy"));
    rows.push(memory("memory of Envoy without the filter", &bare, "envoy"));
    rows.extend(explanations(&sidecar.namespace, "memory"));
    say(&format!("{}\n", report::table(&rows)));
    if node_start::is_benchmark() {
        report::write(&workspace().join("target"), "kubernetes", &rows).expect("target/ is writable");
    }
    let beyond = |row: &&Row| row.value > if row.unit == "s" { 30.0 } else { 150.0 };
    let beyond: Vec<&str> = rows.iter().filter(beyond).map(|row| row.name.as_str()).collect();
    assert!(beyond.is_empty(), "far above the expected cost: {beyond:?}");
}
