//! Measures the time from the creation of a Pod until it is Ready: without the sidecar, and with it for
//! each way to let the application wait. Pods of all kinds take turns.

use kit::report::{Row, median, quantile};
use kubernetes_tests::node::condition;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::Instant;

use crate::node_kinds::{self, Ports};
use crate::node_paired_pods::{PairedPods, Side};

/// The number of Pods of each kind, which run one after the other, besides the first one: it waits until
/// its images are unpacked, and is not measured.
const PODS: usize = 2;
/// Environment variable with another number of Pods.
const PODS_VARIABLE: &str = "APP_HEALTH_BENCH_PODS";
const PROXY: &str = "app-health-proxy";

/// The gate: the condition for which the application waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    NoSidecar,
    /// The shipped template.
    StartupProbe,
    PostStart,
    /// Nothing: the application starts as soon as the sidecar has started.
    Ungated,
}

impl Gate {
    const ALL: [Self; 4] = [Self::NoSidecar, Self::StartupProbe, Self::PostStart, Self::Ungated];

    fn name(self) -> &'static str {
        match self {
            Self::NoSidecar => "without sidecar",
            Self::StartupProbe => "startupProbe",
            Self::PostStart => "postStart",
            Self::Ungated => "no gate",
        }
    }

    /// Changes the sidecar of an injected Pod.
    fn apply(self, sidecar: &mut Value) {
        let sidecar = sidecar.as_object_mut().expect("a container");
        if matches!(self, Self::PostStart | Self::Ungated) {
            sidecar.remove("startupProbe");
        }
        if self == Self::PostStart {
            sidecar["lifecycle"]["postStart"] =
                json!({"exec": {"command": ["app-health-agent", "wait", "--timeoutSeconds", "30"]}});
        }
    }
}

/// Seconds since `kubectl create` was started.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// The agent's first log line.
    agent: Option<f64>,
    proxy_ready: Option<f64>,
    /// The application's first log line.
    application: f64,
    ready: f64,
}

/// Returns a Pod with one application and a readiness probe each second.
pub(crate) fn pod(name: &str) -> Value {
    let mut app = Ports::of(0).container("app", &[]);
    app["readinessProbe"] = json!({"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 1});
    let mut pod = node_kinds::pod(name, &[app]);
    // The default of Pods is a service account token. The kubelet waits 0.3 s for its volume, as it does
    // for the volume of the sidecar.
    pod["spec"]["automountServiceAccountToken"] = true.into();
    pod
}

/// Returns the Pod as the webhook would create it, with another gate.
fn injected(side: &Side<'_>, pod: &Value, gate: Gate) -> Value {
    let dry_run = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
    let injected = side.namespace.kubectl_ok(&dry_run, &pod.to_string());
    let injected: Value = serde_json::from_str(&injected).expect("JSON");
    let mut spec = injected["spec"].clone();
    let sidecar = spec["initContainers"].as_array_mut().expect("a native sidecar");
    gate.apply(sidecar.iter_mut().find(|container| container["name"] == PROXY).expect("a sidecar"));
    let metadata = &injected["metadata"];
    json!({
        "apiVersion": "v1", "kind": "Pod", "spec": spec,
        "metadata": {
            "name": metadata["name"], "labels": metadata["labels"], "annotations": metadata["annotations"],
        },
    })
}

/// Returns the time of the first log line of a container that contains `words`.
fn logged(side: &Side<'_>, pod: &str, container: &str, words: &str) -> OffsetDateTime {
    let log = side.namespace.kubectl_ok(&["logs", pod, "-c", container, "--timestamps"], "");
    let line = log.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("no {words} in {log}"));
    let time = line.split(' ').next().expect("a line has a beginning");
    OffsetDateTime::parse(time, &Rfc3339).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn start(side: &Side<'_>, pod: &Value, has_sidecar: bool) -> Times {
    let name = pod["metadata"]["name"].as_str().expect("a name");
    let (created, start) = (OffsetDateTime::now_utc(), Instant::now());
    side.namespace.create(pod);
    side.until(name, "is ready", |pod| condition(pod, "Ready"));
    let changes = side.watch.changes(name, |pod| condition(pod, "Ready"));
    let (at, _) = changes.iter().find(|(_, is_ready)| *is_ready).expect("it is ready");
    let since = |time: OffsetDateTime| (time - created).as_seconds_f64();
    Times {
        agent: has_sidecar.then(|| since(logged(side, name, PROXY, "filter chosen"))),
        proxy_ready: has_sidecar.then(|| since(logged(side, name, PROXY, "envoy became ready"))),
        application: since(logged(side, name, "app", "")),
        ready: (*at - start).as_secs_f64(),
    }
}

/// Returns true if this is a benchmark, not a test.
pub(crate) fn is_benchmark() -> bool {
    std::env::var_os(PODS_VARIABLE).is_some()
}

fn pods() -> usize {
    let Some(pods) = std::env::var_os(PODS_VARIABLE) else { return PODS };
    let number = pods.to_str().and_then(|pods| pods.parse().ok()).filter(|number| *number > 0);
    number.unwrap_or_else(|| panic!("{PODS_VARIABLE} = {pods:?}: must be a number from 1"))
}

/// Returns the times of Pods of every kind, in seconds.
pub(crate) fn measure(paired_pods: &PairedPods<'_>) -> Vec<Row> {
    let [plain, labelled] = &paired_pods.sides;
    let mut times = Gate::ALL.map(|_| Vec::new());
    for number in 0..=pods() {
        for (gate, times) in Gate::ALL.into_iter().zip(&mut times) {
            let pod = pod(&format!("{}-{number}", gate.name().replace(' ', "-").to_lowercase()));
            let pod = if gate == Gate::NoSidecar { pod } else { injected(labelled, &pod, gate) };
            let found = start(plain, &pod, gate != Gate::NoSidecar);
            if number > 0 {
                times.push(found);
            }
            let name = pod["metadata"]["name"].as_str().expect("a name");
            plain.namespace.kubectl_ok(&["delete", "pod", name, "--grace-period=1"], "");
        }
    }
    let baseline = ready(&times[0]);
    Gate::ALL.into_iter().zip(&times).flat_map(|(gate, times)| rows(gate, times, &baseline)).collect()
}

fn ready(times: &[Times]) -> Vec<f64> {
    times.iter().map(|times| times.ready).collect()
}

/// Returns the figures of one kind; `baseline` are the times without the sidecar.
fn rows(gate: Gate, times: &[Times], baseline: &[f64]) -> Vec<Row> {
    let row = |what: &str, value: f64| Row::new(format!("{}: {what}", gate.name()), value, "s");
    let median_of = |what: &str, of: fn(&Times) -> Option<f64>| {
        let values: Vec<f64> = times.iter().filter_map(of).collect();
        (!values.is_empty()).then(|| row(what, median(&values)))
    };
    let ready = ready(times);
    let mut rows: Vec<Row> = [
        median_of("agent started, median", |times| times.agent),
        median_of("proxy ready, median", |times| times.proxy_ready),
        median_of("application started, median", |times| Some(times.application)),
    ]
    .into_iter()
    .flatten()
    .collect();
    rows.push(row("Pod Ready, median", median(&ready)));
    rows.push(row("Pod Ready, p95", quantile(&ready, 0.95)));
    if gate != Gate::NoSidecar {
        // The bars are for the gate that docs/injection.md recommends to those who need fast starts.
        let bar = |row: Row, bar| if gate == Gate::PostStart { row.at_most(bar) } else { row };
        let p95 = quantile(&ready, 0.95) - quantile(baseline, 0.95);
        let more = median(&ready) - median(baseline);
        rows.push(bar(row("Pod Ready, median, more than without", more), 0.35));
        rows.push(bar(row("Pod Ready, p95, more than without", p95), 1.0));
    }
    rows
}
