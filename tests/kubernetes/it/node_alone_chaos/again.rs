//! Envoy is killed repeatedly. Between two starts of a container the kubelet waits 0, 10, 20, 40
//! s…, at most five minutes, and resets that after ten minutes without an exit. Until the sidecar
//! runs again, no process answers the application's probes.

use std::thread::sleep;
use std::time::Duration;

use kubernetes_tests::node::{Node, Space};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::scene::{
    APP, SIDECAR, ask, assert_told, assert_untouched, envoy, is_ready, pod, pod_with, restarts, run, seen,
    signal, took,
};

/// After so many exits the kubelet waits longer than three probe failures at 10 s intervals take.
const ENDS: u64 = 4;

pub(super) fn again(node: &Node) {
    let space = node.space("again", true);
    let keeps = json!({"env": [{"name": "APP_HEALTH_ENVOY_RESTART", "value": "always"}]});
    let before = [pod("ends"), pod_with("keeps", &keeps)].map(|mut pod| {
        // A long period causes few events, because the kubelet limits the events of a Pod.
        pod["spec"]["containers"][0]["readinessProbe"]["periodSeconds"] = 10.into();
        run(&space, &pod)
    });
    for end in 1..=ENDS {
        let begin = Instant::now();
        let old = ["ends", "keeps"].map(|name| {
            let old = envoy(node, &space.pod(name));
            signal(node, "KILL", old);
            old
        });
        back(&space, "keeps", old[1], &format!("end {end}, restarted by the agent"), begin);
        back(&space, "ends", old[0], &format!("end {end}, restarted by kubelet"), begin);
        let ends = space.pod("ends");
        seen(&format!(
            "  the application with that sidecar has been restarted {} times",
            restarts(&ends, APP)
        ));
        // 10 s and a start are two failures, 20 s and a start are two or three.
        if end <= 2 {
            assert_untouched(&before[0], &ends);
        }
    }
    let ends = space.pod_until("ends", "is ready after its application was restarted", |pod| {
        is_ready(pod) && restarts(pod, APP) > 0
    });
    assert_eq!(restarts(&ends, SIDECAR), ENDS);
    for expected in
        ["Back-off restarting failed container app-health-proxy", "Container app failed liveness probe"]
    {
        assert_told(&space, "ends", expected);
    }
    let keeps = space.pod_until("keeps", "is ready", is_ready);
    assert_untouched(&before[1], &keeps);
    assert_eq!(restarts(&keeps, SIDECAR), 0);
    let told = space.logs("keeps").matches("envoy exited unexpectedly").count();
    assert_eq!(u64::try_from(told), Ok(ENDS), "{}", space.logs("keeps"));
}

/// Waits until a new Envoy process answers probes.
fn back(space: &Space, name: &str, old: Option<u32>, what: &str, begin: Instant) {
    let answers = |pod: &Value| {
        let new = envoy(space.node, pod);
        new.is_some() && new != old && ask(pod, "livez") == 200
    };
    while !answers(&space.pod(name)) {
        assert!(begin.elapsed() < Duration::from_secs(120), "{what}: {:#}", space.pod(name)["status"]);
        sleep(Duration::from_millis(100));
    }
    took(what, begin);
}
