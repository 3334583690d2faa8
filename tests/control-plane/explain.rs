//! Tests of `app-health explain` against a scripted API server: requests, permissions, deadlines,
//! exit codes. Which cause follows from what is read is tested in the crate `explain`.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::explain_support::{ApiServer, Routes, Scripted, kubeconfig, result};

const PODS: &str = "/api/v1/namespaces/shop/pods";
const EVENTS: &str = "/api/v1/namespaces/shop/events";
const NAMESPACE: &str = "/api/v1/namespaces/shop";
const WEBHOOK: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/app-health";
const READYZ: &str = "/api/v1/namespaces/shop/pods/web:15020/proxy/app-health/app/readyz";
const METRICS: &str = "/api/v1/namespaces/shop/pods/web:15020/proxy/stats/prometheus";
const READINESS: &str = "/api/v1/namespaces/shop/pods/web:15021/proxy/healthz/ready";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/shop/deployments";

fn pod(name: &str, ready: bool) -> Value {
    let is = if ready { "True" } else { "False" };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-of-{name}"), "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "web"},
            "ownerReferences": [{"kind": "ReplicaSet", "uid": "uid-of-set"}],
            "annotations": {"app-health.io/status": "{\"version\":\"0.1.0\",\"mode\":\"native\"}"}},
        "spec": {
            "nodeName": "node1",
            "initContainers": [{"name": "app-health-proxy", "restartPolicy": "Always"}],
            "containers": [{"name": "app", "readinessProbe": {
                "httpGet": {"path": "/app-health/app/readyz", "port": 15020}, "timeoutSeconds": 1,
            }, "lifecycle": {"preStop": {"httpGet": {"path": "/app-lifecycle/app/prestopz", "port": 15020}}}}],
        },
        "status": {
            "phase": "Running", "podIP": "10.0.0.7",
            "conditions": [{"type": "ContainersReady", "status": is}, {"type": "Ready", "status": is}],
            "initContainerStatuses": [{"name": "app-health-proxy", "ready": true, "started": true, "state": {"running": {}}}],
            "containerStatuses": [{"name": "app", "ready": ready, "started": true, "state": {"running": {}}}],
        },
    })
}

/// A server with a healthy Pod `web`.
fn routes() -> Routes {
    let ready = json!({"ready": true, "phase": "ready", "envoy": "1.40.0", "pending": []});
    let node = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    let metrics = "app_health_probes_total{container=\"app\",kind=\"readyz\",reason=\"ok\"} 7\n";
    Routes::from([
        (format!("{PODS}/web"), Scripted::object(&pod("web", true))),
        (EVENTS.to_owned(), Scripted::list(&[])),
        (
            NAMESPACE.to_owned(),
            Scripted::object(&json!({"metadata": {"labels": {"app-health.io/injection": "enabled"}}})),
        ),
        (WEBHOOK.to_owned(), Scripted::object(&json!({"metadata": {}, "webhooks": []}))),
        ("/api/v1/nodes/node1".to_owned(), Scripted::object(&node)),
        (READYZ.to_owned(), Scripted::Response(200, String::new())),
        (METRICS.to_owned(), Scripted::Response(200, metrics.to_owned())),
        (READINESS.to_owned(), Scripted::object(&ready)),
        (format!("{PODS}/web/log"), Scripted::Response(200, String::new())),
    ])
}

fn refused() -> Scripted {
    Scripted::Response(502, "refused: nothing listens on the declared port".to_owned())
}

fn json_of(stdout: &str) -> Value {
    serde_json::from_str(stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"))
}

#[test]
fn healthy_pod() {
    let server = ApiServer::start("healthy", routes());
    let (code, stdout, stderr) = server.explain(&["pod/web"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    assert!(stdout.starts_with("pod/web in shop: healthy\n") && stdout.contains("Envoy 1.40.0"), "{stdout}");
    let requests = server.requests();
    assert!(!requests.iter().any(|path| path.contains("app-lifecycle")), "no hook is called: {requests:?}");
    assert_eq!(requests.iter().filter(|path| path.as_str() == READYZ).count(), 1, "{requests:?}");
    assert!(requests.iter().any(|path| path.contains("involvedObject.name%3Dweb")), "{requests:?}");
}

#[test]
fn unhealthy_pod_as_json() {
    let server = ApiServer::start("unhealthy", routes());
    server.set(&format!("{PODS}/web"), Scripted::object(&pod("web", false)));
    server.set(READYZ, refused());
    let (code, stdout, _) = server.explain(&["pod/web", "--output", "json"]);
    let report = json_of(&stdout);
    assert_eq!(code, Some(1));
    assert_eq!((&report["object"], &report["namespace"]), (&json!("pod/web"), &json!("shop")));
    assert_eq!((&report["verdict"], &report["cause"]["code"]), (&json!("unhealthy"), &json!("probe")));
    let probe = &report["pods"][0]["probes"][0];
    assert_eq!((&probe["status"], &probe["reason"]), (&json!(502), &json!("refused")));
    assert_eq!((&probe["container"], &probe["probe"]), (&json!("app"), &json!("readiness")));
}

#[test]
fn sidecar_that_is_not_ready_says_why_with_503() {
    let server = ApiServer::start("not-ready", routes());
    let pending = json!([{"condition": "clusters", "reason": "clusters not received", "seconds": 9.5}]);
    let body = json!({"ready": false, "phase": "starting", "pending": pending}).to_string();
    server.set(READINESS, Scripted::Response(503, body));
    server.set(&format!("{PODS}/web"), Scripted::object(&pod("web", false)));
    let (code, stdout, _) = server.explain(&["pod/web"]);
    assert!(
        code == Some(1) && stdout.contains("the sidecar is not ready: clusters not received"),
        "{stdout}"
    );
}

#[test]
fn missing_permissions_are_named() {
    let rows: [(&[&str], &str); 6] = [
        (&[EVENTS], "Role: {apiGroups: [\"\"], resources: [events], verbs: [list]}"),
        (&[READYZ, METRICS, READINESS], "Role: {apiGroups: [\"\"], resources: [pods/proxy], verbs: [get]}"),
        (
            &["/api/v1/namespaces/shop/pods/web/log"],
            "Role: {apiGroups: [\"\"], resources: [pods/log], verbs: [get]}",
        ),
        (&["/api/v1/nodes/node1"], "ClusterRole: {apiGroups: [\"\"], resources: [nodes], verbs: [get]}"),
        (&[NAMESPACE], "ClusterRole: {apiGroups: [\"\"], resources: [namespaces], verbs: [get]}"),
        (
            &[WEBHOOK],
            "ClusterRole: {apiGroups: [\"admissionregistration.k8s.io\"], resources: [mutatingwebhookconfigurations], verbs: [get]}",
        ),
    ];
    for (paths, rule) in rows {
        let server = ApiServer::start("forbidden", routes());
        for path in paths {
            server.set(path, Scripted::forbidden());
        }
        let (code, stdout, _) = server.explain(&["pod/web"]);
        let rules: Vec<&str> =
            stdout.lines().map(str::trim).filter(|line| line.contains("apiGroups")).collect();
        assert_eq!((code, rules), (Some(0), vec![rule]), "{stdout}");
    }
    let server = ApiServer::start("forbidden-pod", routes());
    server.set(&format!("{PODS}/web"), Scripted::forbidden());
    let (code, stdout, _) = server.explain(&["pod/web"]);
    assert!(code == Some(4) && stdout.contains("resources: [pods], verbs: [get]"), "{stdout}");
}

#[test]
fn exit_codes() {
    let server = ApiServer::start("codes", routes());
    let mut plain = pod("web", true);
    plain["spec"]["initContainers"] = json!([]);
    plain["spec"]["containers"][0]["readinessProbe"] = Value::Null;
    server.set(&format!("{PODS}/plain"), Scripted::object(&plain));
    for (flags, expected) in [
        (&["pod/web"][..], 0),
        (&["pod", "web"], 0),
        (&["pod/plain"], 3),
        (&["pod/none"], 4),
        (&["deployment/none"], 4),
        (&["web", "--namespace", "other"], 4),
        (&["web", "--context", "other"], 4),
        (&["web", "--context", "unknown"], 69),
        (&["service/web"], 64),
        (&[], 64),
        (&["web", "--kubeconfig", "/nonexistent"], 66),
    ] {
        let (code, stdout, stderr) = server.explain(flags);
        assert_eq!(code, Some(expected), "{flags:?}: {stdout}{stderr}");
    }
    assert!(server.requests().iter().any(|path| path == "/api/v1/namespaces/elsewhere/pods/web"));
}

#[test]
fn api_server_that_does_not_respond() {
    let server = ApiServer::start("silent", routes());
    server.set(&format!("{PODS}/web"), Scripted::Silence);
    let (code, _, stderr) = server.explain(&["pod/web", "--timeout", "200ms"]);
    assert!(code == Some(69) && stderr.contains("no response within 200 ms"), "{stderr}");

    server.set(&format!("{PODS}/web"), Scripted::status(401, "Unauthorized"));
    let (code, _, stderr) = server.explain(&["pod/web"]);
    assert!(code == Some(69) && stderr.contains("credentials"), "{stderr}");

    // No server listens on this port, which belongs to a socket that does not accept.
    let closed =
        std::net::UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port");
    let file = server.folder().join("closed");
    std::fs::write(&file, kubeconfig(closed)).expect("a file");
    let (code, _, stderr) = server.explain(&["pod/web", "--kubeconfig", file.to_str().expect("UTF-8")]);
    assert!(code == Some(69) && stderr.contains("API server"), "{stderr}");
}

/// Every request has its own deadline, so what does not answer hides nothing else.
#[test]
fn requests_that_hang_are_left_out() {
    let server = ApiServer::start("hanging", routes());
    for path in [EVENTS, NAMESPACE, WEBHOOK, METRICS, READINESS, "/api/v1/nodes/node1"] {
        server.set(path, Scripted::Silence);
    }
    server.set(&format!("{PODS}/web"), Scripted::object(&pod("web", false)));
    server.set(READYZ, refused());
    let (code, stdout, _) = server.explain(&["pod/web", "--timeout", "200ms"]);
    assert!(code == Some(1) && stdout.contains("502 refused"), "{stdout}");
}

#[test]
fn deployment_shows_the_worst_pods_first() {
    let server = ApiServer::start("deployment", routes());
    let selector = json!({"matchLabels": {"app": "web"}});
    let deployment = json!({"metadata": {"name": "web", "uid": "uid-of-deployment"}, "spec": {"replicas": 3, "selector": selector}});
    let set = json!({"metadata": {"name": "web-1", "uid": "uid-of-set", "ownerReferences": [{"uid": "uid-of-deployment"}]}});
    let mut stranger = pod("stranger", false);
    stranger["metadata"]["ownerReferences"] = json!([]);
    server.set(&format!("{DEPLOYMENTS}/web"), Scripted::object(&deployment));
    server.set("/apis/apps/v1/namespaces/shop/replicasets", Scripted::list(&[set]));
    server.set(PODS, Scripted::list(&[pod("web", true), pod("web-b", false), pod("web-c", false), stranger]));
    for name in ["web-b", "web-c"] {
        server.set(&READYZ.replace("web:", &format!("{name}:")), refused());
        server.set(
            &READINESS.replace("web:", &format!("{name}:")),
            Scripted::object(&json!({"ready": true, "phase": "ready"})),
        );
    }
    let (code, stdout, _) = server.explain(&["deployment/web"]);
    assert_eq!(code, Some(1), "{stdout}");
    let place = |text: &str| stdout.find(text).unwrap_or_else(|| panic!("{text}: {stdout}"));
    assert!(place("pod/web-b, pod/web-c: unhealthy") < place("pod/web: healthy"), "{stdout}");
    assert!(!stdout.contains("stranger"), "{stdout}");
    assert!(
        server.requests().iter().any(|path| path.contains("labelSelector=app%3Dweb")),
        "{:?}",
        server.requests()
    );

    let failed = json!({"reason": "FailedCreate", "type": "Warning", "lastTimestamp": "2026-01-01T00:00:00Z",
        "involvedObject": {"uid": "uid-of-set"},
        "message": "Error creating: Internal error occurred: failed calling webhook \"namespace.webhook.app-health.io\": no endpoints"});
    server.set(EVENTS, Scripted::list(&[failed]));
    server.set(PODS, Scripted::list(&[pod("web", true), pod("web-b", false)]));
    let (_, stdout, _) = server.explain(&["deployment/web"]);
    assert!(stdout.contains("CAUSE  its Pods cannot be created") && stdout.contains("(refused)"), "{stdout}");
}

#[test]
fn watch_prints_again_after_a_change() {
    let server = ApiServer::start("watch", routes());
    let mut child = server
        .command(&["pod/web", "--watch", "--output", "json"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the process starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut next = || json_of(&lines.next().expect("a line").expect("UTF-8"))["verdict"].clone();
    assert_eq!(next(), "healthy");
    // The counters grow, which alone is no change.
    server.set(
        METRICS,
        Scripted::Response(
            200,
            "app_health_probes_total{container=\"app\",kind=\"readyz\",reason=\"ok\"} 9\n".to_owned(),
        ),
    );
    let asked = |server: &ApiServer| server.requests().iter().filter(|path| path.as_str() == METRICS).count();
    let before = asked(&server);
    while asked(&server) < before + 2 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    server.set(READYZ, refused());
    assert_eq!(next(), "unhealthy");
    child.kill().expect("the process runs");
    child.wait().expect("the process ends");
}

/// kubectl runs `kubectl-app_health` for `kubectl app-health`.
#[test]
fn kubectl_plugin() {
    let server = ApiServer::start("plugin", routes());
    let plugin = server.folder().join("kubectl-app_health");
    symlink(kit::agent::binary_of("app-health"), &plugin).expect("a link");
    let output = Command::new(&plugin)
        .args(["explain", "pod/web"])
        .env("KUBECONFIG", server.folder().join("kubeconfig"))
        .output()
        .expect("the process ends");
    let (code, stdout, stderr) = result(&output);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let (code, help, _) =
        result(&Command::new(&plugin).args(["explain", "--help"]).output().expect("the process ends"));
    assert!(code == Some(0) && help.contains("Exit codes: 0 healthy, 1 unhealthy, 3 not injected"), "{help}");
}
