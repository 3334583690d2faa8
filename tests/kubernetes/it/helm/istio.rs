//! The chart for an Istio mesh: the policy that it installs, and which Pods the policy changes. The Pods look as
//! Istio's injector leaves them; tests/mesh has the injector.

use kit::envoy::workspace;
use kubernetes_tests::helm::objects;
use serde_json::{Value, json};

use super::{Fixture, assert_equal, without_labels_of_helm};
use crate::wait_until;

const RELEASE: &str = "app-health-istio";
const IMAGE: &str = "registry.example.com/app-health-istio:0.1.0";
const LABEL: &str = "app-health.io/istio-agent";
const PROGRAM: &str = "/opt/app-health/app-health-agent";
/// Only the first one is labeled.
const NAMESPACES: [&str; 2] = ["mesh-enabled", "mesh"];

fn chart() -> String {
    workspace().join("charts/app-health-istio").display().to_string()
}

pub(super) fn manifests_equal(fixture: &mut Fixture) {
    let chart = chart();
    fixture.helm.run(&["lint", "--strict", &chart]).expect("no warning");
    let yaml = fixture.helm.run(&["template", "any-release", &chart]).expect("rendered");
    let mut rendered = objects(&yaml);
    without_labels_of_helm(&mut rendered);
    assert_equal(RELEASE, &rendered, &objects(&fixture.cluster.kustomize("../istio")));
    let wrong = fixture.helm.run(&["template", "any-release", &chart, "--set", "image.pullPolicy=Sometimes"]);
    assert!(wrong.as_ref().is_err_and(|error| error.contains("pullPolicy")), "{wrong:?}");
}

/// What a Pod is changed to.
struct Case {
    name: &'static str,
    namespace: &'static str,
    label: Option<&'static str>,
    pod: Value,
    /// The path of the sidecar, if its agent is replaced.
    sidecar: Option<&'static str>,
}

fn cases() -> Vec<Case> {
    let [enabled, other] = NAMESPACES;
    let native = Some("/spec/initContainers/1");
    let case = |name, namespace, label, pod, sidecar| Case { name, namespace, label, pod, sidecar };
    let with = |pointer: &str, value: Value| {
        let mut pod = pod(true);
        *pod.pointer_mut(pointer).expect("a field") = value;
        pod
    };
    let volumes = json!([{"name": "istio-data", "emptyDir": {}}, {"name": "app-health", "emptyDir": {}}]);
    vec![
        case("a native sidecar", enabled, None, pod(true), native),
        case("a classic sidecar", enabled, None, pod(false), Some("/spec/containers/1")),
        case("a Pod that opts in", other, Some("enabled"), pod(true), native),
        case("both", enabled, Some("enabled"), pod(true), native),
        case(
            "a Pod with other labels",
            enabled,
            None,
            with("/metadata", json!({"name": "web", "labels": {"app": "web"}})),
            native,
        ),
        case("images that are always pulled", enabled, None, always_pulled(), native),
        case("a Pod that opts out", enabled, Some("disabled"), pod(true), None),
        case("a Pod of another namespace", other, None, pod(true), None),
        case("a Pod without a sidecar", enabled, None, with("/spec/initContainers", json!([])), None),
        case("a gateway", enabled, None, with("/spec/initContainers/1/args/1", "router".into()), None),
        case("a command", enabled, None, with("/spec/initContainers/1/command", json!(["/agent"])), None),
        case("a volume of the name", enabled, None, with("/spec/volumes", volumes), None),
    ]
}

/// A Pod as the admission plugin AlwaysPullImages leaves it, which then refuses another policy for volumes.
fn always_pulled() -> Value {
    let mut pod = pod(true);
    for list in ["containers", "initContainers"] {
        for container in pod["spec"][list].as_array_mut().expect("a list") {
            container["imagePullPolicy"] = "Always".into();
        }
    }
    pod
}

/// A Pod that Istio's injector has changed.
fn pod(is_native: bool) -> Value {
    let probe = |path: &str, timeout: u64| json!({"httpGet": {"path": path, "port": 15020}, "timeoutSeconds": timeout});
    let mut sidecar = json!({
        "name": "istio-proxy", "image": "proxyv2:1", "args": ["proxy", "sidecar"], "command": null,
        "volumeMounts": [{"name": "istio-data", "mountPath": "/var/lib/istio/data"}],
        "startupProbe": probe("/healthz/ready", 3),
    });
    let app = json!({
        "name": "app", "image": "app:1", "readinessProbe": probe("/app-health/app/readyz", 4),
        "livenessProbe": {"tcpSocket": {"port": 80}, "timeoutSeconds": 7},
    });
    let mut helper = json!({
        "name": "helper", "image": "helper:1", "restartPolicy": "Always", "livenessProbe": probe("/app-health/helper/livez", 1),
    });
    helper["startupProbe"] =
        json!({"httpGet": {"path": "/app-health/app/startupz", "port": 80}, "timeoutSeconds": 9});
    let (mut containers, mut init_containers) =
        (vec![app], vec![json!({"name": "istio-init", "image": "proxyv2:1"})]);
    if is_native {
        sidecar["restartPolicy"] = "Always".into();
        init_containers.push(sidecar);
    } else {
        containers.push(sidecar);
    }
    init_containers.push(helper);
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
        "spec": {
            "containers": containers, "initContainers": init_containers,
            "volumes": [{"name": "istio-data", "emptyDir": {}}],
        },
    })
}

pub(super) fn policy(fixture: &mut Fixture) {
    let (cluster, chart) = (&fixture.cluster, chart());
    let place = ["--namespace", "istio-system", "--create-namespace"];
    let image = format!("image.repository={}", IMAGE.split_once(':').expect("a tag").0);
    let install = ["install", RELEASE, &chart, "--set", &image];
    fixture.helm.run(&[&install[..], &place].concat()).expect("installed");
    let [enabled, other] = NAMESPACES;
    cluster.create_namespace(enabled, &[&format!("{LABEL}=enabled")]);
    cluster.create_namespace(other, &[]);
    let created = |namespace: &str, pod: &Value| -> Value {
        let create = ["-n", namespace, "create", "--dry-run=server", "-o", "json", "-f", "-"];
        let (text, _) = cluster.kubectl_ok(&create, &pod.to_string());
        serde_json::from_str(&text).expect("JSON")
    };
    let command = |pod: &Value, path: &str| pod.pointer(&format!("{path}/command/0")).cloned();
    let mut labeled = pod(true);
    labeled["metadata"]["labels"] = json!({LABEL: "enabled"});
    let is_changed =
        |namespace: &str, pod: &Value| command(&created(namespace, pod), "/spec/initContainers/1").is_some();
    let is_active = || is_changed(enabled, &pod(true)) && is_changed(other, &labeled);
    wait_until("the API server applies the policy", is_active);
    for Case { name, namespace, label, mut pod, sidecar } in cases() {
        // The Pod as the API server returns it without the policy.
        let mut expected = created(other, &pod);
        if let Some(label) = label {
            pod["metadata"]["labels"][LABEL] = label.into();
        }
        let found = created(namespace, &pod);
        if let Some(sidecar) = sidecar {
            change(&mut expected, sidecar);
        }
        assert_eq!(found["spec"], expected["spec"], "{name}");
        if let Some(label) = sidecar.map(|_| "enabled").or(label) {
            expected["metadata"]["labels"][LABEL] = label.into();
        }
        assert_eq!(found["metadata"]["labels"], expected["metadata"]["labels"], "{name}");
    }
    fixture.helm.run(&["uninstall", RELEASE, "--namespace", "istio-system"]).expect("uninstalled");
}

/// Changes a Pod as the policy does.
fn change(pod: &mut Value, sidecar: &str) {
    let add = |list: &mut Value, element: Value| list.as_array_mut().expect("a list").push(element);
    let container = pod.pointer_mut(sidecar).expect("a container");
    container["command"] = json!([PROGRAM]);
    let mount = json!({"name": "app-health", "mountPath": "/opt/app-health", "readOnly": true});
    add(&mut container["volumeMounts"], mount);
    let pull_policy = pod["spec"]["containers"][0]["imagePullPolicy"].clone();
    let image = json!({"reference": IMAGE, "pullPolicy": pull_policy});
    add(&mut pod["spec"]["volumes"], json!({"name": "app-health", "image": image}));
    pod["spec"]["containers"][0]["readinessProbe"]["timeoutSeconds"] = 5.into();
    let helper = pod["spec"]["initContainers"].as_array_mut().expect("a list").last_mut().expect("a helper");
    helper["livenessProbe"]["timeoutSeconds"] = 2.into();
}
