//! Kubelet's probes of Pods whose traffic is captured, under strict mutual TLS.

use kit::docker::archive::{APPLICATION, BUSYBOX};
use kubernetes_tests::node::{Namespace, address, container, http_get};
use mesh_tests::Mesh;
use mesh_tests::workloads::{Agent, control, pod};
use serde_json::{Value, json};

/// The containers whose probes target the running application, named like the kind of their probes.
const RUNNING: [&str; 4] = ["http", "https", "grpc", "tcp"];
/// A port on which no server listens.
const CLOSED_PORT: u16 = 7777;
const PODS: [(&str, Agent); 2] = [("stock", Agent::Stock), ("ours", Agent::Mounted)];

/// One application, and a container for each kind of probe of it.
fn containers() -> Vec<Value> {
    let prober = |name: &str, mut probe: Value| {
        probe["periodSeconds"] = 1.into();
        json!({"name": name, "image": BUSYBOX, "command": ["sleep", "86400"], "readinessProbe": probe})
    };
    vec![
        json!({"name": "app", "image": APPLICATION}),
        prober("http", json!({"httpGet": {"path": "/ready", "port": 8080}})),
        prober("https", json!({"httpGet": {"path": "/ready", "port": 8443, "scheme": "HTTPS"}})),
        prober("grpc", json!({"grpc": {"port": 9000}})),
        prober("tcp", json!({"tcpSocket": {"port": 5432}})),
        prober("closed", json!({"tcpSocket": {"port": CLOSED_PORT}})),
    ]
}

#[test]
#[ignore = "needs a node and Istio's programs: ./justw test-istio-mesh"]
fn probes_follow_the_application() {
    let mesh = Mesh::shared();
    let namespace = mesh.create_namespace("probes");
    for (name, agent) in PODS {
        let mut pod = pod(name, agent, &containers());
        pod["spec"]["terminationGracePeriodSeconds"] = 1.into();
        namespace.create(&pod);
    }
    let all = |pod: &Value, is_ready: bool| RUNNING.iter().all(|name| ready(pod, name) == is_ready);
    for (name, _) in PODS {
        namespace.pod_until(name, "passes all probes", |pod| all(pod, true));
        switch_all(&namespace, name, "failing");
        namespace.pod_until(name, "fails all probes", |pod| all(pod, false));
        switch_all(&namespace, name, "serving");
        let pod = namespace.pod_until(name, "passes all probes again", |pod| all(pod, true));
        assert!(!ready(&pod, "closed"), "no server listens on that port");
    }
    // The response says why, which that of Istio's agent does not.
    let path = |pod: &Value| {
        let containers = pod["spec"]["containers"].as_array().expect("containers");
        let closed = containers.iter().find(|container| container["name"] == "closed").expect("a container");
        closed["readinessProbe"]["httpGet"]["path"].as_str().expect("a path").to_owned()
    };
    let answers = PODS.map(|(name, _)| {
        let pod = namespace.pod(name);
        let answer = http_get(address(&pod, 15020), &path(&pod));
        (answer.status, answer.text().trim().to_owned())
    });
    let [(stock, _), (ours, reason)] = answers;
    assert_eq!((stock, ours), (500, 502));
    assert!(reason.starts_with("refused: "), "{reason}");
}

fn ready(pod: &Value, name: &str) -> bool {
    container(pod, name)["ready"] == true
}

fn switch_all(namespace: &Namespace<'_>, pod: &str, to: &str) {
    for name in RUNNING {
        control(namespace, pod, "app", &format!("/{name}/{to}"));
    }
}
