//! A classic sidecar that holds the application back until it is ready.

use kit::terminal::say;
use kubernetes_tests::node::{Node, Space, condition};
use serde_json::json;

use crate::node_kinds::{self, Ports};

const POD: &str = "held";

/// When a container's log first said so: whole seconds, and the part of a second behind them, which can be compared.
fn said(space: &Space<'_>, container: &str, words: &str) -> (String, String) {
    let log = space.done(&["logs", POD, "-c", container, "--timestamps"], "");
    let line = log.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("no {words} in {log}"));
    let time = line.split(' ').next().expect("a line has a beginning");
    let (seconds, fraction) = time.trim_end_matches('Z').split_once('.').unwrap_or((time, ""));
    (seconds.to_owned(), format!("{fraction:0<9}"))
}

#[test]
#[ignore = "needs a Kubernetes node: ./justw test-kubernetes"]
fn node_classic_sidecar_holds_the_application() {
    let space = Node::shared().space("hold", true);
    let watch = space.watch();
    let mut app = Ports::of(0).container("app", &[]);
    app["readinessProbe"] = json!({"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 1});
    let mut pod = node_kinds::pod(POD, &[app]);
    pod["metadata"]["annotations"] = json!({
        "sidecar.istio.io/nativeSidecar": "false",
        "proxy.istio.io/config": "holdApplicationUntilProxyStarts: true",
    });
    space.create(&pod);
    space.until_seen(&watch, POD, "is ready", |pod| condition(pod, "Ready"));
    let pod = watch.last(POD);
    assert!(pod["spec"]["initContainers"].is_null(), "the sidecar is a classic one");
    let ready = said(&space, "app-health-proxy", "ready seconds=");
    let first = said(&space, "app", "");
    say(&format!(
        "the sidecar was ready at {}.{}, the application said its first at {}.{}\n",
        ready.0, ready.1, first.0, first.1
    ));
    assert!(said(&space, "app", "application: started") == first, "that is what it says first");
    assert!(ready < first);
}
