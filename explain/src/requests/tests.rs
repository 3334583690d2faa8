use serde_json::json;

use super::*;

fn pod(probe: &Value, status: &Value) -> Value {
    json!({
        "metadata": {"name": "web"},
        "spec": {"nodeName": "node1", "containers": [
            {"name": "app", "ports": [{"name": "http", "containerPort": 8080}], "readinessProbe": probe},
        ]},
        "status": {"podIP": "10.0.0.7", "containerStatuses": [status]},
    })
}

fn running() -> Value {
    json!({"name": "app", "started": true, "ready": true, "state": {"running": {}}})
}

#[test]
fn paths_of_probes() {
    let cases = [
        (
            json!({"httpGet": {"path": "/app-health/app/readyz", "port": 15020}}),
            Some("web:15020/proxy/app-health/app/readyz"),
        ),
        (json!({"httpGet": {"path": "/ready?deep=1", "port": "http"}}), Some("web:8080/proxy/ready?deep=1")),
        (json!({"httpGet": {"port": 8443, "scheme": "HTTPS"}}), Some("https:web:8443/proxy/")),
        (json!({"httpGet": {"path": "/a/../b", "port": 8080}}), None),
        (json!({"httpGet": {"path": "/%2e", "port": 8080}}), None),
        (json!({"httpGet": {"path": "/", "port": "unknown"}}), None),
        (json!({"httpGet": {"path": "/", "port": 80, "host": "192.0.2.1"}}), None),
        (
            json!({"httpGet": {"path": "/", "port": 80, "httpHeaders": [{"name": "Host", "value": "a"}]}}),
            None,
        ),
        (json!({"tcpSocket": {"port": 8080}}), None),
        (json!({"exec": {"command": ["true"]}}), None),
    ];
    for (probe, expected) in cases {
        let requests = Requests::of(&pod(&probe, &running())).probes;
        assert_eq!(requests.first().map(|request| request.path.as_str()), expected, "{probe}");
    }
}

#[test]
fn only_running_containers_are_probed() {
    let probe = json!({"httpGet": {"path": "/", "port": 8080}});
    let waiting =
        json!({"name": "app", "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}});
    let requests = Requests::of(&pod(&probe, &waiting));
    assert_eq!(
        (requests.probes.len(), requests.previous_logs),
        (0, vec![LogRequest { container: "app".to_owned(), previous: false }])
    );
    assert_eq!(requests.node.as_deref(), Some("node1"));
}

#[test]
fn other_probes_wait_for_the_startup_probe() {
    let mut pod = pod(&json!({"httpGet": {"path": "/", "port": 8080}}), &running());
    pod["spec"]["containers"][0]["startupProbe"] = json!({"httpGet": {"path": "/s", "port": 8080}});
    let kinds = |pod: &Value| Requests::of(pod).probes.iter().map(|request| request.kind).collect::<Vec<_>>();
    assert_eq!(kinds(&pod), [ProbeKind::Readiness]);
    pod["status"]["containerStatuses"][0]["started"] = false.into();
    assert_eq!(kinds(&pod), [ProbeKind::Startup]);
}

#[test]
fn requests_to_the_sidecar() {
    let mut pod = pod(&json!({"httpGet": {"path": "/app-health/app/readyz", "port": 15090}}), &running());
    pod["spec"]["initContainers"] = json!([{"name": "app-health-proxy", "restartPolicy": "Always"}]);
    assert_eq!(Requests::of(&pod).metrics, None);
    pod["status"]["initContainerStatuses"] = json!([{"name": "app-health-proxy", "state": {"running": {}}}]);
    let requests = Requests::of(&pod);
    assert_eq!(requests.metrics.as_deref(), Some("web:15090/proxy/stats/prometheus"));
    assert_eq!(requests.readiness.as_deref(), Some("web:15021/proxy/healthz/ready?verbose"));
    assert_eq!(requests.sidecar_log.as_deref(), Some("app-health-proxy"));
}
