//! What Pods with either agent do when a part of the mesh fails. Both are called during each fault, by
//! one client, and a line says what it saw. Where a fault concerns the whole node, no other test runs beside it.

use std::path::Path;

use kit::terminal::say;
use kubernetes_tests::node::{address, condition, container, http_get};
use mesh_tests::scenario::{PODS, Row, Scenario, Undo, restarts};
use mesh_tests::sidecar::{self, Program};
use mesh_tests::workloads::Calls;
use mesh_tests::{Mesh, SYSTEM};
use nix::sys::signal::{Signal, kill};
use serde_json::json;

/// How long istiod is unavailable, in seconds; 90 by default.
const SECONDS: &str = "APP_HEALTH_TEST_SECONDS_WITHOUT_ISTIOD";

/// Our agent starts Envoy again, Istio's ends with it.
#[test]
#[ignore = "needs a node and Istio's programs: ./justw test-istio-mesh"]
fn envoy_is_killed() {
    kill_programs("Envoy is killed", Program::Envoy, [1, 0]);
}

#[test]
#[ignore = "needs a node and Istio's programs: ./justw test-istio-mesh"]
fn the_agent_is_killed() {
    kill_programs("the agent is killed", Program::Agent, [1, 1]);
}

/// Kills a program of both Pods, which kubelet then restarts that often.
fn kill_programs(fault: &str, program: Program, restarts: [u64; 2]) {
    let scenario = Scenario::start(Mesh::shared(), "");
    for (name, _) in PODS {
        scenario.replace(name, program);
    }
    print(fault, &[scenario.recovered("stock", restarts[0]), scenario.recovered("ours", restarts[1])]);
}

/// A restart needs no room for what is there already.
#[test]
#[ignore = "needs a node and Istio's programs: ./justw test-istio-mesh"]
fn the_sidecar_restarts_with_a_full_disk() {
    let mesh = Mesh::shared();
    let small = json!([{"name": "istio-envoy", "emptyDir": {"medium": "Memory", "sizeLimit": "2Mi"}}]);
    let scenario = Scenario::of_pods(mesh, "", |pod| pod["spec"]["volumes"] = small.clone());
    let fill = ["sh", "-c", "! cat /dev/zero >/etc/istio/proxy/filler"];
    for (name, _) in PODS {
        let on_sidecar = ["exec", name, "-c", "istio-proxy", "--"];
        scenario.namespace.kubectl_ok(&[&on_sidecar[..], &fill].concat(), "");
    }
    // The next ones of the stock Pod end at once.
    scenario.kill("stock", Program::Agent);
    scenario.replace("ours", Program::Agent);
    let ours = scenario.recovered("ours", 1);
    let stock = scenario.namespace.pod_until("stock", "cannot start its sidecar", |pod| {
        !condition(pod, "Ready") && restarts(pod, "istio-proxy") > 1
    });
    let calls = scenario.calls("stock");
    print(
        "the sidecar restarts with a full disk",
        &[("stock", restarts(&stock, "istio-proxy"), calls), ours],
    );
}

/// Files in memory, at most 400 MiB, take the room of the container. With control groups of version 1 the kernel kills Envoy, which is
/// the largest process; with version 2, kubelet lets it kill all processes of the container.
#[test]
#[ignore = "needs a node and Istio's programs: ./justw test-istio-mesh"]
fn the_memory_limit_is_reached() {
    let scenario = Scenario::of_pods(Mesh::shared(), "", |pod| {
        let annotations = &mut pod["metadata"]["annotations"];
        annotations["sidecar.istio.io/proxyMemory"] = "40Mi".into();
        annotations["sidecar.istio.io/proxyMemoryLimit"] = "192Mi".into();
    });
    let namespace = &scenario.namespace;
    for (name, _) in PODS {
        let envoy = scenario.process(name, Program::Envoy).expect("Envoy runs");
        let filler = "/etc/istio/proxy/filler";
        let fill = format!(
            "n=0; while grep -q '^State:.[RSD]' /proc/{}/status && [ $n -lt 400 ]; do head -c 1048576 /dev/zero >>{filler}; n=$((n+1)); done; rm {filler}",
            sidecar::in_container(envoy)
        );
        // The command ends early with the container.
        let fill = ["exec", "-n", &namespace.name, name, "-c", "istio-proxy", "--", "sh", "-c", &fill];
        namespace.node.cluster.kubectl(&fill, "");
        scenario.until_replaced(name, Program::Envoy, envoy);
    }
    let ends_together = Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
    // The kernel may kill the agent too before it has freed the memory of Envoy.
    let ours = scenario.recovered_after("ours", u64::from(ends_together)..=1);
    if ours.1 > 0 {
        // Otherwise the agent would have exited by itself.
        let pod = scenario.namespace.pod("ours");
        assert_eq!(
            container(&pod, "istio-proxy")["lastState"]["terminated"]["exitCode"],
            137,
            "{}",
            pod["status"]
        );
    }
    print("the memory limit is reached", &[scenario.recovered("stock", 1), ours]);
}

/// Our agent replaces an Envoy that answers nothing.
#[test]
#[ignore = "needs a node and Istio's programs: ./justw test-istio-mesh"]
fn envoy_hangs() {
    let mesh = Mesh::shared();
    let scenario = Scenario::start(mesh, "APP_HEALTH_ENVOY_HANG_SECONDS: \"5\"");
    let stopped = PODS.map(|(name, _)| {
        let process = scenario.process(name, Program::Envoy).expect("Envoy runs");
        kill(process, Signal::SIGSTOP).expect("Envoy runs");
        process
    });
    scenario.until_replaced("ours", Program::Envoy, stopped[1]);
    let ours = scenario.recovered("ours", 0);
    assert_eq!(
        scenario.process("stock", Program::Envoy),
        Some(stopped[0]),
        "Istio's agent does not notice it"
    );
    let mut stock = Calls::default();
    mesh.node.until("requests to the Pod with Istio's agent fail", || {
        stock = stock.and(&scenario.calls("stock"));
        stock.failed > 0
    });
    print("Envoy hangs; the limit of our agent is 5 s", &[("stock", 0, stock), ours]);
}

/// Faults of the whole node. An API server that a test has started ends with the thread of that test, so that
/// its restart comes last.
#[test]
#[ignore = "needs a node and Istio's programs: ./justw test-istio-mesh"]
fn alone_faults_of_the_node() {
    let mesh = Mesh::shared();
    the_sidecar_restarts_without_dns(mesh);
    the_sidecar_restarts_while_istiod_is_unavailable(mesh);
    the_root_is_rotated(mesh);
    the_api_server_restarts_and_certificates_are_renewed(mesh);
}

fn the_api_server_restarts_and_certificates_are_renewed(mesh: &Mesh) {
    let scenario = Scenario::start(mesh, "SECRET_TTL: 60s");
    mesh.node.cluster.stop_api_server();
    mesh.node.cluster.start_api_server();
    for (name, _) in PODS {
        let address = address(&scenario.namespace.pod(name), 15020);
        mesh.node.until(&format!("the certificate of {name} is renewed twice"), || {
            let metrics = http_get(address, "/stats/prometheus").text();
            let requests = metrics
                .lines()
                .find_map(|line| {
                    line.strip_prefix("istio_agent_num_outgoing_requests{request_type=\"csr\"} ")
                })
                .and_then(|value| value.parse::<f64>().ok());
            requests.is_some_and(|requests| requests >= 3.0)
        });
    }
    let rows = PODS.map(|(name, _)| scenario.recovered(name, 0));
    print("the API server restarts, and certificates are renewed twice", &rows);
    for (name, _, calls) in rows {
        assert_eq!(calls.failed, 0, "{name}: {calls:?}");
    }
}

/// The address of istiod is a name.
fn the_sidecar_restarts_without_dns(mesh: &Mesh) {
    let scenario = Scenario::start(mesh, "");
    mesh.node.signal_dns(Signal::SIGSTOP);
    let stopped = Undo(|| mesh.node.signal_dns(Signal::SIGCONT));
    for (name, _) in PODS {
        scenario.replace(name, Program::Agent);
    }
    let ours = scenario.recovered("ours", 1);
    scenario.namespace.pod_until("stock", "is not ready", |pod| !condition(pod, "Ready"));
    drop(stopped);
    let rows = [scenario.recovered("stock", 1), ours];
    print("the sidecar restarts while DNS is gone", &rows);
}

/// Our agent needs istiod only for what has changed.
fn the_sidecar_restarts_while_istiod_is_unavailable(mesh: &Mesh) {
    let scenario = Scenario::start(mesh, "");
    let rows = scenario.restart_without_istiod(seconds_without_istiod(), || {
        let mut explained = String::new();
        let is_explained = || {
            explained = mesh.explain(&scenario.namespace.name, "pod/ours");
            explained.contains("Envoy uses a stored configuration")
        };
        mesh.node.until("the use of the stored configuration is explained", is_explained);
        assert!(explained.contains("Istio's injector has added the sidecar istio-proxy"), "{explained}");
    });
    print("the sidecar restarts while istiod is unavailable", &rows);
}

/// istiod replaces its self-signed root certificate, and signs the certificates of Pods with the new one.
fn the_root_is_rotated(mesh: &Mesh) {
    let scenario = Scenario::start(mesh, "SECRET_TTL: 60s");
    let before = PODS.map(|(name, _)| scenario.root_certificates(name));
    let set = |settings: [&str; 3]| {
        let cluster = &mesh.node.cluster;
        cluster.kubectl_ok(&[&["set", "env", "-n", SYSTEM, "deployment/istiod"], &settings[..]].concat(), "");
        cluster.kubectl_ok(&["rollout", "status", "-n", SYSTEM, "deployment/istiod"], "");
    };
    set([
        "CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL=10s",
        "CITADEL_SELF_SIGNED_ROOT_CERT_GRACE_PERIOD_PERCENTILE=100",
        "CITADEL_ENABLE_JITTER_FOR_ROOT_CERT_ROTATOR=false",
    ]);
    let rotating = Undo(|| {
        set([
            "CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL-",
            "CITADEL_SELF_SIGNED_ROOT_CERT_GRACE_PERIOD_PERCENTILE-",
            "CITADEL_ENABLE_JITTER_FOR_ROOT_CERT_ROTATOR-",
        ]);
    });
    for ((name, _), before) in PODS.iter().zip(&before) {
        mesh.node.until(&format!("{name} has another root certificate"), || {
            let now = scenario.root_certificates(name);
            !now.is_empty() && now.is_disjoint(before)
        });
    }
    let rows = PODS.map(|(name, _)| scenario.recovered(name, 0));
    drop(rotating);
    print("the root certificate is rotated", &rows);
    for (name, _, calls) in rows {
        assert_eq!(calls.failed, 0, "{name}: {calls:?}");
    }
}

/// Returns how long istiod is unavailable after the restart, in seconds of calls.
fn seconds_without_istiod() -> u64 {
    let set = std::env::vars().find(|(name, _)| name == SECONDS);
    set.map_or(90, |(_, set)| set.parse().unwrap_or_else(|_| panic!("{SECONDS} = {set}: must be a number")))
}

fn print(fault: &str, rows: &[Row]) {
    for (name, restarts, calls) in rows {
        say(&format!(
            "{fault}: {name}: {} of {} requests failed, {:.1} s without a success, {restarts} restarts of the sidecar\n",
            calls.failed,
            calls.failed + calls.succeeded,
            calls.longest_gap,
        ));
    }
}
