//! A test that the application starts only after a classic sidecar is ready.

use kit::terminal::say;
use kubernetes_tests::node::{Namespace, Node, condition};
use serde_json::json;

use crate::node_kinds::{self, Ports};

const POD: &str = "held";

/// Returns the time of the first log line of a container with these words, as seconds and as a
/// fraction that is padded to nine digits for comparison.
fn first_log_time(namespace: &Namespace<'_>, container: &str, words: &str) -> (String, String) {
    let log = namespace.kubectl_ok(&["logs", POD, "-c", container, "--timestamps"], "");
    let line = log.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("no {words} in {log}"));
    let time = line.split(' ').next().expect("a line has a beginning");
    let (seconds, fraction) = time.trim_end_matches('Z').split_once('.').unwrap_or((time, ""));
    (seconds.to_owned(), format!("{fraction:0<9}"))
}

#[test]
#[ignore = "needs a Kubernetes node: ./justw test-kubernetes"]
fn node_classic_sidecar_holds_the_application() {
    let namespace = Node::shared().create_namespace("hold", true);
    let watch = namespace.watch();
    let mut app = Ports::of(0).container("app", &[]);
    app["readinessProbe"] = json!({"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 1});
    let mut pod = node_kinds::pod(POD, &[app]);
    pod["metadata"]["annotations"] = json!({
        "sidecar.istio.io/nativeSidecar": "false",
        "proxy.istio.io/config": "holdApplicationUntilProxyStarts: true",
    });
    namespace.create(&pod);
    namespace.wait_until(&watch, POD, "is ready", |pod| condition(pod, "Ready"));
    let pod = watch.last(POD);
    assert!(pod["spec"]["initContainers"].is_null(), "the sidecar is a classic one");
    let ready = first_log_time(&namespace, "app-health-proxy", "ready seconds=");
    let first = first_log_time(&namespace, "app", "");
    say(&format!(
        "the sidecar was ready at {}.{}, the first log line of the application is from {}.{}\n",
        ready.0, ready.1, first.0, first.1
    ));
    assert!(
        first_log_time(&namespace, "app", "application: started") == first,
        "this must be the application's first log line"
    );
    assert!(ready < first);
}
