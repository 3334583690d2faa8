//! Tests of strict mutual TLS on a real node with `envoy-config/kubernetes/strict-mtls`: the same
//! Pod with its declared probes and with rewritten ones, and which clients reach the application.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use kit::app::tls::install_provider;
use kit::authority::{Authority, Issued};
use kit::caller::Answer;
use kit::caller::tls::Caller;
use kit::docker::archive::{APPLICATION, BUSYBOX, DEBIAN};
use kubernetes_tests::manifests;
use kubernetes_tests::node::{Namespace, Node, SYSTEM, address};
use serde_json::{Value, json};

use crate::http_get;
use crate::node_paired_pods::{ready, restarts};

/// A port on which no server listens.
const CLOSED_PORT: u16 = 7777;
const NAME: &str = "shop.example.com";
/// The line of the shipped template that names the capture image.
const CAPTURE: &str = "image: app-health-capture:1";

#[test]
#[ignore = "needs a Kubernetes node: ./justw test-kubernetes"]
fn node_alone_strict_mtls() {
    install_provider();
    let node = Node::start("strict-mtls");
    install(&node);
    let namespace = node.create_namespace("shop", true);
    let trusted = TrustedClient::new();
    trusted.prepare(&namespace);
    namespace.create(&pod("declared", false));
    namespace.create(&pod("rewritten", true));
    as_declared(&namespace);
    as_rewritten(&namespace, &trusted);
    who_reaches_it(&namespace, &trusted);
}

/// Installs the webhook with the template as in the guide, with a capture image that exists on the
/// node.
fn install(node: &Node) {
    let folder = node.folder.join("manifests");
    std::fs::create_dir_all(&folder).expect("a writable folder");
    for name in ["base", "overlays", "strict-mtls"] {
        let copied = Command::new("cp").arg("-r").arg(manifests(name)).arg(&folder).status();
        assert!(copied.expect("cp starts").success(), "{name}");
    }
    let (overlay, template) = (folder.join("strict-mtls"), folder.join("strict-mtls/sidecar.yaml"));
    let text = std::fs::read_to_string(&template).expect("the template");
    assert_eq!(text.matches(CAPTURE).count(), 1, "it is named in one place");
    std::fs::write(&template, text.replace(CAPTURE, &format!("image: {DEBIAN}"))).expect("writable");
    node.cluster.kubectl_ok(&["apply", "-k", path(&overlay)], "");
    node.cluster.kubectl_ok(
        &["rollout", "status", "-n", SYSTEM, "deployment/app-health-webhook", "--timeout", "90s"],
        "",
    );
}

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// The containers whose probes target the running application, named like the kind of their probes.
const RUNNING: [&str; 4] = ["http", "https", "grpc", "tcp"];

/// A Pod with one application, and a container for each kind of probe of that application.
fn pod(name: &str, rewritten: bool) -> Value {
    let prober = |name: &str, mut probe: Value| {
        probe["periodSeconds"] = 1.into();
        let mut liveness = probe.clone();
        liveness["failureThreshold"] = 5.into();
        json!({"name": name, "image": BUSYBOX, "command": ["sleep", "86400"],
               "readinessProbe": probe, "livenessProbe": if name == "closed" { Value::Null } else { liveness }})
    };
    let annotation = "sidecar.istio.io/rewriteAppHTTPProbers";
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "annotations": {annotation: rewritten.to_string()}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [
            {"name": "app", "image": APPLICATION},
            prober("http", json!({"httpGet": {"path": "/ready", "port": 8080}})),
            prober("https", json!({"httpGet": {"path": "/ready", "port": 8443, "scheme": "HTTPS"}})),
            prober("grpc", json!({"grpc": {"port": 9000}})),
            prober("tcp", json!({"tcpSocket": {"port": 5432}})),
            prober("closed", json!({"tcpSocket": {"port": CLOSED_PORT}})),
        ]},
    })
}

/// With declared probes, HTTP, HTTPS and gRPC always fail, so healthy containers are restarted, and
/// a TCP probe of a closed port succeeds.
fn as_declared(namespace: &Namespace<'_>) {
    let for_nothing = |pod: &Value| RUNNING[..3].iter().all(|name| restarts(pod, name) >= 1);
    let pod = namespace.pod_until(
        "declared",
        "passes the probe of a closed port, and restarts healthy containers",
        |pod| {
            assert!(!RUNNING[..3].iter().any(|name| ready(pod, name)), "{}", pod["status"]);
            ready(pod, "closed") && for_nothing(pod)
        },
    );
    assert!(ready(&pod, "tcp"), "a TCP probe of the running application must succeed too");
    assert_eq!(pod["spec"]["initContainers"][0]["name"], "app-health-capture");
    assert_eq!(pod["spec"]["containers"][1]["readinessProbe"]["httpGet"]["path"], "/ready");
}

/// With rewritten probes, every verdict is correct and follows the application.
fn as_rewritten(namespace: &Namespace<'_>, trusted: &TrustedClient) {
    let all = |pod: &Value, is_ready: bool| RUNNING.iter().all(|name| ready(pod, name) == is_ready);
    let pod =
        namespace.pod_until("rewritten", "is ready, except for the container with the closed port", |pod| {
            all(pod, true)
        });
    let restarted: Vec<u64> = RUNNING.iter().map(|name| restarts(&pod, name)).collect();
    assert_eq!(restarted, [0; 4]);
    // The response that kubelet gets from the rewritten probe.
    let containers = pod["spec"]["containers"].as_array().expect("containers");
    let closed = containers.iter().find(|container| container["name"] == "closed").expect("a container");
    let answer =
        http_get(address(&pod, 15020), closed["readinessProbe"]["httpGet"]["path"].as_str().expect("a path"));
    assert_eq!((answer.status, answer.word().as_str()), (502, "refused"));

    let switch_all = |to: &str| {
        for name in RUNNING {
            let path = format!("/{name}/{to}");
            assert_eq!(trusted.ask(address(&pod, 9900), &path).expect("the switches").status, 200, "{path}");
        }
    };
    switch_all("failing");
    namespace.pod_until("rewritten", "is unready while the application fails", |pod| all(pod, false));
    switch_all("serving");
    let pod = namespace.pod_until("rewritten", "is ready again", |pod| all(pod, true));
    assert!(!ready(&pod, "closed"));
}

/// A client with a certificate reaches the application; a client without one reaches it through no
/// port.
fn who_reaches_it(namespace: &Namespace<'_>, trusted: &TrustedClient) {
    let pod = namespace.pod("rewritten");
    let answer = trusted.ask(address(&pod, 8080), "/trusted").expect("with a certificate");
    assert_eq!(answer.status, 200);
    let untrusted = Authority::new().sign("untrusted.example.com");
    for port in [8080, 8443, 9900, 15006] {
        assert_eq!(http_get(address(&pod, port), "/untrusted").status, 0, "{port}");
        trusted
            .ask_as(None, address(&pod, port), "/untrusted")
            .expect_err("a client without a certificate must be rejected");
        let other = trusted.ask_as(Some(&untrusted), address(&pod, port), "/untrusted");
        other.expect_err("a certificate of another authority must be rejected");
    }
    for path in ["/untrusted", "/app-health/app/untrusted", "http://127.0.0.1:8080/untrusted"] {
        assert!(matches!(http_get(address(&pod, 15020), path).status, 400 | 404), "{path}");
    }
    let seen = trusted.ask(address(&pod, 9900), "/seen").expect("with a certificate").text();
    assert!(seen.contains("GET /trusted ") && seen.contains("GET /ready "), "{seen}");
    assert!(!seen.contains("untrusted"), "{seen}");
}

/// A client with a certificate of the authority that the Pods trust.
struct TrustedClient {
    authority: Authority,
    issued: Issued,
}

impl TrustedClient {
    fn new() -> Self {
        let authority = Authority::new();
        let issued = authority.sign("trusted.example.com");
        Self { authority, issued }
    }

    /// Creates the ConfigMap and the Secret that the Pods of the namespace need.
    fn prepare(&self, namespace: &Namespace<'_>) {
        namespace.kubectl_ok(&["apply", "-k", path(&manifests("strict-mtls/namespace"))], "");
        let server = self.authority.sign(NAME);
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "app-health-strict-mtls"}, "type": "kubernetes.io/tls",
            "stringData": {"tls.crt": server.certificate, "tls.key": server.key, "ca.crt": self.authority.pem()},
        });
        namespace.create(&secret);
    }

    fn ask(&self, address: SocketAddr, path: &str) -> std::io::Result<Answer> {
        self.ask_as(Some(&self.issued), address, path)
    }

    fn ask_as(&self, issued: Option<&Issued>, address: SocketAddr, path: &str) -> std::io::Result<Answer> {
        let identity = issued.map(|issued| (issued.certificate.as_str(), issued.key.as_str()));
        let caller = Caller { server: NAME, authority: &self.authority.pem(), identity };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(caller.get(address, path))
    }
}
