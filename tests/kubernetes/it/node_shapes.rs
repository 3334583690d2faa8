//! Tests of probes as users write them: ports by name, a `Host` header, a path that looks like a
//! variable, a native sidecar of the user, lifecycle hooks. The application receives the same
//! requests with the sidecar as without it, byte for byte.

use std::collections::BTreeSet;

use kit::docker::archive;
use kubernetes_tests::node::{FollowedLog, Node, condition, container};
use serde_json::{Value, json};

use crate::node_kinds::{self, Ports};
use crate::node_paired_pods::{PairedPods, Side, restarts, wait};

const POD: &str = "shop";
const APP: u16 = 0;
const HELPER: u16 = 1;

/// A Pod with the application and a native sidecar of the user. The postStart hook calls that
/// sidecar, which already listens when the hook runs.
fn pod() -> Value {
    // A machine under load must not restart a container: the test compares requests, not times.
    let period = |mut probe: Value| {
        probe["periodSeconds"] = 1.into();
        probe["timeoutSeconds"] = 20.into();
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

/// Waits until an application has received requests, and returns their distinct headers, with the
/// Pod's address replaced by `POD`.
fn heads(side: &Side<'_>, number: u16, protocol: &str) -> BTreeSet<String> {
    let mut heads = BTreeSet::new();
    side.namespace.node.until("the application has received a request", || {
        heads = seen(side, number, protocol);
        !heads.is_empty()
    });
    heads
}

fn seen(side: &Side<'_>, number: u16, protocol: &str) -> BTreeSet<String> {
    let seen = wait(side.ask(POD, Ports::of(number).control(), "GET /seen"));
    let seen: Value = serde_json::from_slice(&seen.body).expect("JSON");
    let ip = side.watch.last(POD)["status"]["podIP"].as_str().expect("the Pod has an IP address").to_owned();
    let heads = seen[protocol].as_array().expect("a list").iter();
    heads.map(|head| head.as_str().expect("text").replace(&ip, "POD")).collect()
}

/// Applies the known difference D7, which affects only headers about the connection.
fn expected_request(head: &str, protocol: &str) -> String {
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
    let paired_pods = PairedPods::new(Node::shared(), "shapes");
    paired_pods.create(&[pod()]);
    paired_pods.until(POD, "is ready", |pod| condition(pod, "Ready"));
    for side in &paired_pods.sides {
        assert_eq!(container(&side.watch.last(POD), "setup")["state"]["terminated"]["reason"], "Completed");
    }
    let both = |number, protocol| paired_pods.sides.each_ref().map(|side| heads(side, number, protocol));
    for (number, protocol) in [(APP, "http"), (APP, "https"), (HELPER, "http")] {
        let [baseline, sidecar] = both(number, protocol);
        let expected: BTreeSet<String> =
            baseline.iter().map(|head| expected_request(head, protocol)).collect();
        assert_eq!(sidecar, expected, "{number} {protocol}");
    }
    let [_, app] = both(APP, "http");
    let ready = app.first().expect("the application received requests");
    for words in
        ["GET /ready/$(HOME)/$$x?a=$(INSTANCE_IP) HTTP/1.1\r\n", "shop.example.com\r\n", ": $(PATH)\r\n"]
    {
        assert!(ready.contains(words), "{ready}");
    }
    let [_, helper] = both(HELPER, "http");
    assert!(helper.iter().any(|head| head.starts_with("GET /hook/start HTTP/1.1\r\n")), "{helper:?}");
    let restarted = |pod: &Value| restarts(pod, "app") + restarts(pod, "helper");
    paired_pods.assert_same_changes(POD, restarted, &[0]);
    assert_pre_stop_hook(&paired_pods);
}

/// Asserts that the preStop hook is called. The test follows the container's log to its end,
/// because a container that terminates cannot be queried.
fn assert_pre_stop_hook(paired_pods: &PairedPods<'_>) {
    let follow = |side: &Side<'_>| FollowedLog::start(&side.namespace, POD, "app");
    let followed = paired_pods.sides.each_ref().map(follow);
    for side in &paired_pods.sides {
        side.namespace.kubectl_ok(&["delete", "pod", POD, "--wait=false"], "");
    }
    for (log, side) in followed.into_iter().zip(&paired_pods.sides) {
        let log = log.until_end();
        assert!(log.starts_with("application: started\n"), "{}: {log}", side.name);
        assert!(log.contains("application: received request for /hook/stop\n"), "{}: {log}", side.name);
    }
}
