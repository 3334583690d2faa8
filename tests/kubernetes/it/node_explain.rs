//! Broken Pods on a real node: `app-health explain` alone must name the cause of each.

use std::process::Command;

use kit::agent::binary_of;
use kit::docker::archive;
use kubernetes_tests::node::{Namespace, Node, condition};
use serde_json::{Value, json};
use tokio::time::Instant;

/// Number of Pods that run at the same time.
const AT_A_TIME: usize = 6;

/// A Pod with one mistake, and what the explanation must say.
struct Broken {
    name: &'static str,
    /// Fields of the Pod's specification, beside the containers.
    spec: fn() -> Value,
    /// Fields of the application's container.
    container: fn() -> Value,
    /// Exit code, code of the main cause, and a part of its text.
    expected: (i32, &'static str, &'static str),
}

fn nothing() -> Value {
    json!({})
}

/// Probes the page that exists.
fn sound() -> Value {
    json!({"readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 1}})
}

const BROKEN: [Broken; 26] = [
    Broken {
        name: "wrong-port",
        spec: nothing,
        container: || json!({"readinessProbe": {"tcpSocket": {"port": 8081}, "periodSeconds": 1}}),
        expected: (1, "probe", "502 refused"),
    },
    Broken {
        name: "no-page",
        spec: nothing,
        container: || json!({"readinessProbe": {"httpGet": {"path": "/missing", "port": 8080}, "periodSeconds": 1}}),
        expected: (1, "probe", "the application answers 404"),
    },
    Broken {
        name: "hanging",
        spec: nothing,
        container: || {
            let stop = "mkdir /www; httpd -p 8080 -h /www; killall -STOP httpd; exec sleep 86400";
            let mut container = sound();
            container["command"] = json!(["sh", "-c", stop]);
            container
        },
        expected: (1, "probe", "504 timeout"),
    },
    Broken {
        name: "plaintext",
        spec: nothing,
        container: || json!({"readinessProbe": {"httpGet": {"port": 8080, "scheme": "HTTPS"}, "periodSeconds": 1}}),
        expected: (1, "probe", "525 tls"),
    },
    Broken {
        name: "no-grpc",
        spec: nothing,
        container: || json!({"readinessProbe": {"grpc": {"port": 8081}, "periodSeconds": 1}}),
        expected: (1, "probe", "502 refused"),
    },
    Broken {
        name: "command-fails",
        spec: nothing,
        container: || {
            let command = json!(["sh", "-c", "echo no such queue; exit 1"]);
            json!({"readinessProbe": {"exec": {"command": command}, "periodSeconds": 1, "timeoutSeconds": 5}})
        },
        expected: (1, "probe", "no such queue"),
    },
    Broken {
        name: "liveness",
        spec: nothing,
        container: || json!({"livenessProbe": {"tcpSocket": {"port": 8081}, "periodSeconds": 1, "failureThreshold": 2}}),
        expected: (1, "probe", "liveness probe fails: 502 refused"),
    },
    Broken {
        name: "startup",
        spec: nothing,
        container: || json!({"startupProbe": {"tcpSocket": {"port": 8081}, "periodSeconds": 1, "failureThreshold": 600}}),
        expected: (1, "startup", "502 refused"),
    },
    Broken {
        name: "crash",
        spec: nothing,
        container: || json!({"command": ["sh", "-c", "echo cannot open shop.conf; exit 3"]}),
        expected: (1, "application", "exit code 3; its last line: cannot open shop.conf"),
    },
    Broken {
        name: "ends",
        spec: nothing,
        container: || json!({"command": ["true"]}),
        expected: (1, "application", "exits with 0"),
    },
    Broken {
        name: "out-of-memory",
        spec: nothing,
        container: || json!({"command": ["tail", "/dev/zero"], "resources": {"limits": {"memory": "16Mi"}}}),
        expected: (1, "out-of-memory", "16Mi"),
    },
    Broken {
        name: "no-command",
        spec: nothing,
        container: || json!({"command": ["/nonexistent"]}),
        expected: (1, "container-config", "/nonexistent"),
    },
    Broken {
        name: "image-never",
        spec: nothing,
        container: || json!({"image": "app-health-test/missing:1", "imagePullPolicy": "Never"}),
        expected: (1, "image", "ErrImageNeverPull"),
    },
    Broken {
        name: "image-unknown",
        spec: nothing,
        // No registry listens there.
        container: || json!({"image": "127.0.0.1:9/missing:1"}),
        expected: (1, "image", "127.0.0.1:9/missing:1"),
    },
    Broken {
        name: "no-config-map",
        spec: nothing,
        container: || json!({"envFrom": [{"configMapRef": {"name": "missing"}}]}),
        expected: (1, "container-config", "configmap \"missing\" not found"),
    },
    Broken {
        name: "no-volume",
        spec: || json!({"volumes": [{"name": "keys", "secret": {"secretName": "missing"}}]}),
        // kubelet ignores a volume that no container mounts.
        container: || json!({"volumeMounts": [{"name": "keys", "mountPath": "/keys"}]}),
        expected: (1, "volume", "secret \"missing\" not found"),
    },
    Broken {
        name: "no-node",
        spec: || json!({"nodeSelector": {"missing": "yes"}}),
        container: nothing,
        expected: (1, "scheduling", "0/1 nodes are available"),
    },
    Broken {
        name: "too-large",
        spec: nothing,
        container: || json!({"resources": {"requests": {"cpu": "1000"}}}),
        expected: (1, "scheduling", "Insufficient cpu"),
    },
    Broken {
        name: "gated",
        spec: || json!({"schedulingGates": [{"name": "example.com/gate"}]}),
        container: nothing,
        expected: (1, "scheduling", "scheduling gates"),
    },
    Broken {
        name: "init",
        spec: || {
            let command = json!(["sh", "-c", "echo cannot migrate; exit 4"]);
            json!({"initContainers": [{"name": "migrate", "image": archive::BUSYBOX, "command": command}]})
        },
        container: sound,
        expected: (1, "init", "exit code 4"),
    },
    Broken {
        name: "gate",
        spec: || json!({"readinessGates": [{"conditionType": "example.com/registered"}]}),
        container: sound,
        expected: (1, "readiness-gate", "example.com/registered"),
    },
    Broken {
        name: "sidecar-settings",
        spec: || sidecar(&json!([{"name": "APP_HEALTH_LOG_LEVEL", "value": "loud"}])),
        container: sound,
        expected: (1, "sidecar-crash", "exit code 64"),
    },
    Broken {
        name: "sidecar-clusters",
        spec: || sidecar(&json!([{"name": "APP_HEALTH_DYNAMIC", "value": "on"}])),
        container: sound,
        expected: (1, "sidecar", "clusters not received"),
    },
    Broken {
        name: "opted-out",
        spec: || json!({"labels": {"sidecar.istio.io/inject": "false"}}),
        container: sound,
        expected: (3, "not-injected", "label sidecar.istio.io/inject"),
    },
    Broken {
        name: "node-network",
        spec: || json!({"hostNetwork": true}),
        container: || json!({"command": ["sleep", "86400"]}),
        expected: (3, "not-injected", "hostNetwork"),
    },
    Broken {
        name: "port-clash",
        spec: nothing,
        container: || {
            let mut container = sound();
            container["ports"] = json!([{"containerPort": 15021}]);
            container
        },
        expected: (3, "not-injected", "port-clash"),
    },
];

/// Returns fields of the sidecar that override the template.
fn sidecar(environment: &Value) -> Value {
    json!({"sidecar": {"name": "app-health-proxy", "image": "auto", "env": environment}})
}

/// Copies the fields of `from` into `into`.
fn merge(into: &mut Value, from: &Value) {
    for (key, value) in from.as_object().into_iter().flatten() {
        into[key] = value.clone();
    }
}

/// Returns the Pod: an application that serves `/ready` on port 8080, with its mistake. `labels` and
/// `sidecar` are not fields of the specification.
fn pod(broken: &Broken) -> Value {
    let serve = "mkdir /www; echo yes > /www/ready; exec httpd -f -p 8080 -h /www";
    let mut container = json!({"name": "app", "image": archive::BUSYBOX, "command": ["sh", "-c", serve]});
    merge(&mut container, &(broken.container)());
    let mut fields = (broken.spec)();
    let labels = fields["labels"].take();
    let sidecar = fields["sidecar"].take();
    let mut containers = vec![container];
    if !sidecar.is_null() {
        containers.push(sidecar);
    }
    let mut spec = json!({
        "terminationGracePeriodSeconds": 1, "automountServiceAccountToken": false, "enableServiceLinks": false,
        "containers": containers,
    });
    if let Some(fields) = fields.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    merge(&mut spec, &fields);
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": broken.name, "labels": labels}, "spec": spec})
}

/// Runs the command in a namespace; returns its exit code and its report.
pub(crate) fn explain(namespace: &Namespace<'_>, object: &str) -> (Option<i32>, Value) {
    let output = Command::new(binary_of("app-health"))
        .args(["explain", object, "--namespace", &namespace.name, "--output", "json", "--timeout", "60s"])
        .env("KUBECONFIG", namespace.node.cluster.kubeconfig("admin"))
        .output()
        .expect("the command starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let report =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{object}: {error}: {stderr}"));
    (output.status.code(), report)
}

/// Waits until the report is as expected, because a mistake needs some seconds to show.
fn wait_for_cause(namespace: &Namespace<'_>, object: &str, (code, cause, words): (i32, &str, &str)) {
    let mut last = (None, Value::Null);
    let seen = || {
        last = explain(namespace, object);
        let (found, report) = &last;
        let text = report["cause"]["text"].as_str().unwrap_or_default();
        *found == Some(code) && report["cause"]["code"] == cause && text.contains(words)
    };
    let story = || {
        let (code, report) = explain(namespace, object);
        format!("{code:?} {:#}", report)
    };
    namespace.node.until_or(&format!("{object} is explained by {cause}: {words}"), seen, story);
}

#[test]
#[ignore = "needs a Kubernetes node: ./justw test-kubernetes"]
fn node_alone_explains_broken_pods() {
    let namespace = Node::shared().create_namespace("explain", true);
    for some in BROKEN.chunks(AT_A_TIME) {
        for broken in some {
            namespace.create(&pod(broken));
        }
        for broken in some {
            wait_for_cause(&namespace, &format!("pod/{}", broken.name), broken.expected);
        }
        for broken in some {
            namespace.kubectl_ok(&["delete", "pod", broken.name, "--wait=false"], "");
        }
    }
}

#[test]
#[ignore = "needs a Kubernetes node: ./justw test-kubernetes"]
fn node_explains_a_healthy_pod() {
    let namespace = Node::shared().create_namespace("explain-healthy", true);
    let healthy = Broken { name: "web", spec: nothing, container: sound, expected: (0, "", "") };
    namespace.create(&pod(&healthy));
    namespace.pod_until("web", "is ready", |pod| condition(pod, "Ready"));
    let begin = Instant::now();
    let (code, report) = explain(&namespace, "pod/web");
    println!("  explained in {} ms", begin.elapsed().as_millis());
    assert_eq!(
        (code, &report["verdict"], &report["cause"]),
        (Some(0), &json!("healthy"), &Value::Null),
        "{report:#}"
    );
    let probe = &report["pods"][0]["probes"][0];
    assert_eq!(
        (&probe["destination"], &probe["state"], &probe["status"]),
        (&json!("sidecar"), &json!("passing"), &json!(200))
    );
    let sidecar = &report["pods"][0]["sidecar"];
    assert_eq!((&sidecar["phase"], &sidecar["pending"]), (&json!("ready"), &json!([])));

    // A finalizer keeps a deleted Pod.
    let finalizers = |list: &str| format!("{{\"metadata\": {{\"finalizers\": {list}}}}}");
    let patch = |list: &str| {
        namespace.kubectl_ok(&["patch", "pod", "web", "--type=merge", "--patch", &finalizers(list)], "")
    };
    patch("[\"example.com/held\"]");
    namespace.kubectl_ok(&["delete", "pod", "web", "--wait=false"], "");
    wait_for_cause(&namespace, "pod/web", (1, "terminating", "example.com/held"));
    patch("null");
}

#[test]
#[ignore = "needs a Kubernetes node: ./justw test-kubernetes"]
fn node_explains_workloads() {
    let namespace = Node::shared().create_namespace("explain-workloads", true);
    let deployment = |name: &str, replicas: u32, account: &str| {
        let broken = Broken { name: "web", spec: nothing, container: sound, expected: (0, "", "") };
        let labels = json!({"app": name});
        let mut spec = pod(&broken)["spec"].take();
        spec["serviceAccountName"] = account.into();
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec}},
        })
    };
    namespace.create(&deployment("sound", 2, "default"));
    namespace.create(&deployment("none", 0, "default"));
    namespace.create(&deployment("no-account", 1, "missing"));
    wait_for_cause(&namespace, "deployment/none", (1, "no-replicas", "0 replicas"));
    wait_for_cause(&namespace, "deployment/no-account", (1, "refused", "missing"));
    let healthy = || explain(&namespace, "deployment/sound").0 == Some(0);
    namespace.node.until("deployment/sound is healthy", healthy);
    let (_, report) = explain(&namespace, "deployment/sound");
    let groups = report["pods"].as_array().into_iter().flatten();
    let names = groups.filter_map(|group| group["names"].as_array()).map(Vec::len);
    assert_eq!(names.sum::<usize>(), 2, "{report:#}");
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}});
    namespace.create(&quota);
    namespace.create(&deployment("no-quota", 1, "default"));
    wait_for_cause(&namespace, "deployment/no-quota", (1, "quota", "exceeded quota"));
    wait_for_cause(&namespace, "deployment/missing", (4, "not-found", "deployment/missing"));
}
