//! The shapes that a Pod's probes have in the field: ports by name, a `Host` of its own, a path that looks like a variable, a native sidecar
//! of the user, lifecycle hooks. The application sees the same requests as without our sidecar, byte for byte.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use serde_json::{Value, json};
use tests::docker::archive;
use tests::kubernetes::{command, tool};
use tests::node::{Node, condition, container};

use crate::node_kinds::{self, Ports};
use crate::node_twins::{Side, Twins, restarts, wait};

const POD: &str = "shop";
const APP: u16 = 0;
const HELPER: u16 = 1;

/// The application, and beside it a native sidecar of the user's own, to whom the postStart hook speaks since it listens already.
fn pod() -> Value {
    let period = |mut probe: Value| {
        probe["periodSeconds"] = 1.into();
        probe
    };
    let headers =
        json!([{"name": "Host", "value": "shop.example.com"}, {"name": "X-Probe", "value": "$(PATH)"}]);
    let path = "/ready/$(HOME)/$$x?a=$(INSTANCE_IP)";
    let mut app = Ports::of(APP).container("app", &[]);
    app["readinessProbe"] =
        period(json!({"httpGet": {"path": path, "port": "http", "httpHeaders": headers}}));
    app["livenessProbe"] = period(json!({"httpGet": {"path": "/live", "port": "https", "scheme": "HTTPS"}}));
    app["lifecycle"] = json!({
        "postStart": {"httpGet": {"path": "/hook/start", "port": Ports::of(HELPER).http()}},
        "preStop": {"httpGet": {"path": "/hook/stop", "port": "http"}},
    });
    let mut helper = Ports::of(HELPER).container("helper", &["--start-after", "1s"]);
    helper["restartPolicy"] = "Always".into();
    helper["startupProbe"] =
        period(json!({"httpGet": {"path": "/helper", "port": "http"}, "failureThreshold": 60}));
    helper["readinessProbe"] = period(json!({"grpc": {"port": Ports::of(HELPER).grpc()}}));
    helper["livenessProbe"] = period(json!({"tcpSocket": {"port": "tcp"}}));
    let mut pod = node_kinds::pod(POD, &[app]);
    let setup = json!({"name": "setup", "image": archive::BUSYBOX, "command": ["true"]});
    pod["spec"]["initContainers"] = json!([setup, helper]);
    pod["spec"]["terminationGracePeriodSeconds"] = 30.into();
    pod
}

/// The heads of all requests that an application saw, each once, with the Pod's own address as `POD`; as soon as there are any.
fn heads(side: &Side<'_>, number: u16, protocol: &str) -> BTreeSet<String> {
    let mut heads = BTreeSet::new();
    side.space.node.until("the application is asked", || {
        heads = seen(side, number, protocol);
        !heads.is_empty()
    });
    heads
}

fn seen(side: &Side<'_>, number: u16, protocol: &str) -> BTreeSet<String> {
    let seen = wait(side.ask(POD, Ports::of(number).control(), "GET /seen"));
    let seen: Value = serde_json::from_slice(&seen.body).expect("JSON");
    let ip = side.watch.last(POD)["status"]["podIP"].as_str().expect("it has an address").to_owned();
    let heads = seen[protocol].as_array().expect("a list").iter();
    heads.map(|head| head.as_str().expect("text").replace(&ip, "POD")).collect()
}

/// The known difference (D7), which is about the connection alone.
fn as_we_ask(head: &str, protocol: &str) -> String {
    let close = "Connection: close\r\n";
    match protocol {
        "https" => head.replace(close, ""),
        _ if head.contains("User-Agent: kube-lifecycle/") => head.replace("Accept-Encoding: gzip\r\n", close),
        _ => head.to_owned(),
    }
}

#[test]
#[ignore = "needs a Kubernetes node: ./justw test-kubernetes"]
fn node_requests_arrive_as_without_sidecar() {
    let twins = Twins::new(Node::shared(), "shapes");
    twins.create(&[pod()]);
    twins.until(POD, "is ready", |pod| condition(pod, "Ready"));
    for side in &twins.sides {
        assert_eq!(container(&side.watch.last(POD), "setup")["state"]["terminated"]["reason"], "Completed");
    }
    let both = |number, protocol| twins.sides.each_ref().map(|side| heads(side, number, protocol));
    for (number, protocol) in [(APP, "http"), (APP, "https"), (HELPER, "http")] {
        let [plain, sidecar] = both(number, protocol);
        let expected: BTreeSet<String> = plain.iter().map(|head| as_we_ask(head, protocol)).collect();
        assert_eq!(sidecar, expected, "{number} {protocol}");
    }
    let [_, app] = both(APP, "http");
    let ready = app.first().expect("there are heads");
    for words in
        ["GET /ready/$(HOME)/$$x?a=$(INSTANCE_IP) HTTP/1.1\r\n", "shop.example.com\r\n", ": $(PATH)\r\n"]
    {
        assert!(ready.contains(words), "{ready}");
    }
    let [_, helper] = both(HELPER, "http");
    assert!(helper.iter().any(|head| head.starts_with("GET /hook/start HTTP/1.1\r\n")), "{helper:?}");
    let restarted = |pod: &Value| restarts(pod, "app") + restarts(pod, "helper");
    twins.same(POD, restarted, &[0]);
    pre_stop_is_heard(&twins);
}

/// Of a container that ends nobody can ask what it heard, but its log is followed to the end.
fn pre_stop_is_heard(twins: &Twins<'_>) {
    let follow = |side: &Side<'_>| {
        let mut kubectl = command(&tool("kubectl"));
        kubectl.arg("--kubeconfig").arg(side.space.node.cluster.kubeconfig("admin"));
        kubectl.args(["--namespace", &side.space.name, "logs", "--follow", POD, "-c", "app"]);
        let mut kubectl = kubectl.stdout(Stdio::piped()).spawn().expect("setpriv starts");
        let mut log = BufReader::new(kubectl.stdout.take().expect("piped"));
        // The follower is there before the Pod goes.
        let mut first = String::new();
        log.read_line(&mut first).expect("text");
        assert_eq!(first, "application: started\n", "{}", side.name);
        (kubectl, log)
    };
    let followed = twins.sides.each_ref().map(follow);
    for side in &twins.sides {
        side.space.done(&["delete", "pod", POD, "--wait=false"], "");
    }
    for ((mut kubectl, mut rest), side) in followed.into_iter().zip(&twins.sides) {
        let mut log = String::new();
        rest.read_to_string(&mut log).expect("text");
        kubectl.wait().expect("it ends with the container");
        assert!(log.contains("application: received request for /hook/stop\n"), "{}: {log}", side.name);
    }
}
