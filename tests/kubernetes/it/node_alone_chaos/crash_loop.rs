//! Envoy is killed repeatedly. Between two starts of a container kubelet waits 0, 10, 20, 40
//! s…, at most five minutes, and resets that after ten minutes without an exit. Until the sidecar
//! runs again, no process answers the application's probes.

use std::thread::sleep;
use std::time::Duration;

use kit::wait;
use kubernetes_tests::node::{Namespace, Node};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::fixture::{
    APP, SIDECAR, assert_untouched, container, envoy, is_ready, pod, pod_with, print, print_elapsed, probe,
    restarts, run, signal, wait_for_event,
};

/// After so many exits kubelet waits longer than three probe failures at 10 s intervals take.
const ENDS: u64 = 4;
/// Exits of Envoy with the template's defaults. The container ends with each fifth.
const LIMITED_ENDS: u64 = 10;
const LIMITED_RESTARTS: u64 = 2;
/// Time between an Envoy that answers and its next exit: longer than the period of the application's
/// liveness probe, so one probe succeeds. Ten exits without a pause are one outage, which kubelet ends.
const APART: Duration = Duration::from_secs(12);

pub(super) fn crash_loop(node: &Node) {
    let namespace = node.create_namespace("crash-loop", true);
    let mode = |mode: &str| json!({"env": [{"name": "APP_HEALTH_ENVOY_RESTART", "value": mode}]});
    let pods = [pod_with("ends", &mode("never")), pod_with("keeps", &mode("always")), pod("limited")];
    let before = pods.map(|mut pod| {
        // A long period causes few events, because kubelet limits the events of a Pod.
        pod["spec"]["containers"][0]["readinessProbe"]["periodSeconds"] = 10.into();
        run(&namespace, &pod)
    });
    for end in 1..=ENDS {
        let begin = Instant::now();
        let old = ["ends", "keeps"].map(|name| {
            let old = envoy(node, &namespace.pod(name));
            signal(node, "KILL", old);
            old
        });
        back(&namespace, "keeps", old[1], &format!("end {end}, restarted by the agent"), begin);
        back(&namespace, "ends", old[0], &format!("end {end}, restarted by kubelet"), begin);
        let ends = namespace.pod("ends");
        print(&format!(
            "  the application with that sidecar has been restarted {} times",
            restarts(&ends, APP)
        ));
        // 10 s and a start are two failures, 20 s and a start are two or three.
        if end <= 2 {
            assert_untouched(&before[0], &ends);
        }
    }
    let ends = namespace.pod_until("ends", "is ready after its application was restarted", |pod| {
        is_ready(pod) && restarts(pod, APP) > 0
    });
    assert_eq!(restarts(&ends, SIDECAR), ENDS);
    for expected in
        ["Back-off restarting failed container app-health-proxy", "Container app failed liveness probe"]
    {
        wait_for_event(&namespace, "ends", expected);
    }
    let keeps = namespace.pod_until("keeps", "is ready", is_ready);
    assert_untouched(&before[1], &keeps);
    assert_eq!(restarts(&keeps, SIDECAR), 0);
    let told = namespace.logs("keeps").matches("envoy exited unexpectedly").count();
    assert_eq!(u64::try_from(told), Ok(ENDS), "{}", namespace.logs("keeps"));
    limited(node, &namespace, &before[2]);
}

/// Ten exits of Envoy within ten minutes restart the sidecar twice and the application never.
fn limited(node: &Node, namespace: &Namespace, before: &Value) {
    let first = Instant::now();
    for end in 1..=LIMITED_ENDS {
        sleep(APART);
        let begin = Instant::now();
        let old = envoy(node, &namespace.pod("limited"));
        signal(node, "KILL", old);
        back(namespace, "limited", old, &format!("end {end}, restarted by the agent or kubelet"), begin);
    }
    assert!(first.elapsed() < Duration::from_secs(600), "the exits were too slow for this test");
    let is_back = |pod: &Value| restarts(pod, SIDECAR) == LIMITED_RESTARTS && is_ready(pod);
    let after = namespace.pod_until("limited", "shows the crash loop and is ready", is_back);
    assert_untouched(before, &after);
    let message = &container(&after, SIDECAR)["lastState"]["terminated"]["message"];
    assert!(message.as_str().unwrap_or_default().contains("after 4 restarts"), "{message}");
}

/// Waits until a new Envoy process answers probes.
fn back(namespace: &Namespace, name: &str, old: Option<u32>, what: &str, begin: Instant) {
    let answers = |pod: &Value| {
        let new = envoy(namespace.node, pod);
        new.is_some() && new != old && probe(pod, "livez") == 200
    };
    wait::until_blocking(
        || format!("{what}: {:#}", namespace.pod(name)["status"]),
        || answers(&namespace.pod(name)),
    );
    print_elapsed(what, begin);
}
