//! Strict mutual TLS on a real node, by `envoy-config/kubernetes/strict-mtls`: the same Pod with its probes as they are declared and with
//! the probes that the injector made of them; and who reaches the application.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::Command;

use kit::app::tls::install_provider;
use kit::authority::{Authority, Issued};
use kit::caller::Answer;
use kit::caller::tls::Caller;
use kit::docker::archive::{APPLICATION, BUSYBOX, DEBIAN};
use kubernetes_tests::kubernetes::manifests;
use kubernetes_tests::node::{Node, SYSTEM, Space};
use serde_json::{Value, json};

use crate::node_twins::{ready, restarts};
use crate::page;

/// Nothing listens there.
const DEAD: u16 = 7777;
const NAME: &str = "shop.example.com";
/// What the shipped template calls the image that captures.
const CAPTURE: &str = "image: app-health-capture:1";

#[test]
#[ignore = "needs a Kubernetes node: ./justw test-kubernetes"]
fn node_alone_strict_mtls() {
    install_provider();
    let node = Node::start("strict-mtls");
    install(&node);
    let space = node.space("shop", true);
    let friend = Friend::new();
    friend.prepare(&space);
    space.create(&pod("declared", false));
    space.create(&pod("rewritten", true));
    as_declared(&space);
    as_rewritten(&space, &friend);
    who_reaches_it(&space, &friend);
}

/// The webhook with the template, as the guide says: with an image that captures.
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
    node.cluster.done(&["apply", "-k", path(&overlay)], "");
    node.cluster
        .done(&["rollout", "status", "-n", SYSTEM, "deployment/app-health-webhook", "--timeout", "90s"], "");
}

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Containers whose probes are about the living application, and how they ask.
const LIVING: [&str; 4] = ["http", "https", "grpc", "tcp"];

/// A Pod with a container for each probe, all of them about the one application.
fn pod(name: &str, rewritten: bool) -> Value {
    let prober = |name: &str, mut probe: Value| {
        probe["periodSeconds"] = 1.into();
        let mut liveness = probe.clone();
        liveness["failureThreshold"] = 5.into();
        json!({"name": name, "image": BUSYBOX, "command": ["sleep", "86400"],
               "readinessProbe": probe, "livenessProbe": if name == "dead" { Value::Null } else { liveness }})
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
            prober("dead", json!({"tcpSocket": {"port": DEAD}})),
        ]},
    })
}

/// HTTP, HTTPS and gRPC fail every time, so that containers are restarted for nothing; TCP passes where nothing listens.
fn as_declared(space: &Space<'_>) {
    let for_nothing = |pod: &Value| LIVING[..3].iter().all(|name| restarts(pod, name) >= 1);
    let pod =
        space.pod_until("declared", "passes for the dead, and restarts who asks for the living", |pod| {
            assert!(!LIVING[..3].iter().any(|name| ready(pod, name)), "{}", pod["status"]);
            ready(pod, "dead") && for_nothing(pod)
        });
    assert!(ready(&pod, "tcp"), "as it passes for the living");
    assert_eq!(pod["spec"]["initContainers"][0]["name"], "app-health-capture");
    assert_eq!(pod["spec"]["containers"][1]["readinessProbe"]["httpGet"]["path"], "/ready");
}

/// The same Pod, rewritten: every verdict is right, and follows the application.
fn as_rewritten(space: &Space<'_>, friend: &Friend) {
    let all = |pod: &Value, is_ready: bool| LIVING.iter().all(|name| ready(pod, name) == is_ready);
    let pod = space.pod_until("rewritten", "is ready but for the dead", |pod| all(pod, true));
    let restarted: Vec<u64> = LIVING.iter().map(|name| restarts(&pod, name)).collect();
    assert_eq!(restarted, [0; 4]);
    // What kubelet is told, by the path that it was given.
    let containers = pod["spec"]["containers"].as_array().expect("containers");
    let dead = containers.iter().find(|container| container["name"] == "dead").expect("a container");
    let told =
        page(address(&pod, 15020), dead["readinessProbe"]["httpGet"]["path"].as_str().expect("a path"));
    assert_eq!((told.status, told.word().as_str()), (502, "refused"));

    let turn = |to: &str| {
        for name in LIVING {
            let path = format!("/{name}/{to}");
            assert_eq!(friend.ask(address(&pod, 9900), &path).expect("the switches").status, 200, "{path}");
        }
    };
    turn("failing");
    space.pod_until("rewritten", "fails with the application", |pod| all(pod, false));
    turn("serving");
    let pod = space.pod_until("rewritten", "is ready again", |pod| all(pod, true));
    assert!(!ready(&pod, "dead"));
}

/// Who has a certificate reaches the application; who has none does not, by no port.
fn who_reaches_it(space: &Space<'_>, friend: &Friend) {
    let pod = space.pod("rewritten");
    let answer = friend.ask(address(&pod, 8080), "/friend").expect("with a certificate");
    assert_eq!(answer.status, 200);
    let stranger = Authority::new().sign("stranger.example.com");
    for port in [8080, 8443, 9900, 15006] {
        assert_eq!(page(address(&pod, port), "/stranger").status, 0, "{port}");
        friend.ask_as(None, address(&pod, port), "/stranger").expect_err("without a certificate");
        let other = friend.ask_as(Some(&stranger), address(&pod, port), "/stranger");
        other.expect_err("with one of another authority");
    }
    for path in ["/stranger", "/app-health/app/stranger", "http://127.0.0.1:8080/stranger"] {
        assert!(matches!(page(address(&pod, 15020), path).status, 400 | 404), "{path}");
    }
    let seen = friend.ask(address(&pod, 9900), "/seen").expect("with a certificate").text();
    assert!(seen.contains("GET /friend ") && seen.contains("GET /ready "), "{seen}");
    assert!(!seen.contains("stranger"), "{seen}");
}

fn address(pod: &Value, port: u16) -> SocketAddr {
    let ip = pod["status"]["podIP"].as_str().expect("an address");
    SocketAddr::new(ip.parse::<IpAddr>().expect("an address"), port)
}

/// A client with a certificate of the authority that the Pods trust.
struct Friend {
    authority: Authority,
    issued: Issued,
}

impl Friend {
    fn new() -> Self {
        let authority = Authority::new();
        let issued = authority.sign("friend.example.com");
        Self { authority, issued }
    }

    /// Puts into the namespace what its Pods need.
    fn prepare(&self, space: &Space<'_>) {
        space.done(&["apply", "-k", path(&manifests("strict-mtls/namespace"))], "");
        let server = self.authority.sign(NAME);
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "app-health-strict-mtls"}, "type": "kubernetes.io/tls",
            "stringData": {"tls.crt": server.certificate, "tls.key": server.key, "ca.crt": self.authority.pem()},
        });
        space.create(&secret);
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
