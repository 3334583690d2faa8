//! What Pods with either agent do when a part of the mesh fails. Both are called during each fault, by
//! one client, and a line says what it saw. Where a fault concerns the whole node, no other test runs beside it.

use std::collections::BTreeSet;
use std::path::Path;

use kit::terminal::say;
use kubernetes_tests::node::{Namespace, address, condition, container, http_get};
use mesh_tests::sidecar::{self, Program};
use mesh_tests::workloads::{Agent, Calls, application, calls, pod, service};
use mesh_tests::{Mesh, SYSTEM};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

const PODS: [(&str, Agent); 2] = [("stock", Agent::Stock), ("ours", Agent::Mounted)];
const CALLER: &str = "caller";
/// How many half minutes istiod is unavailable; 1 by default.
const HALF_MINUTES: &str = "APP_HEALTH_TEST_HALF_MINUTES_WITHOUT_ISTIOD";

/// Pods that have had no fault yet, so that kubelet does not delay a restart, and their caller.
struct Scenario<'a> {
    mesh: &'a Mesh,
    namespace: Namespace<'a>,
}

/// Ends a fault, also if the test fails.
struct Undo<F: Fn()>(F);

impl<F: Fn()> Drop for Undo<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// A Pod, how often its sidecar has been restarted, and what its caller saw.
type Row = (&'static str, u64, Calls);

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
    let calls = calls(&scenario.namespace, CALLER, &url("stock"));
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
            "n=0; while kill -0 {} && [ $n -lt 400 ]; do head -c 1048576 /dev/zero >>{filler}; n=$((n+1)); done; rm {filler}",
            sidecar::in_container(envoy)
        );
        // The command ends early with the container.
        let fill = ["exec", "-n", &namespace.name, name, "-c", "istio-proxy", "--", "sh", "-c", &fill];
        namespace.node.cluster.kubectl(&fill, "");
        scenario.until_replaced(name, Program::Envoy, envoy);
    }
    let ends_together = Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
    let ours = scenario.recovered("ours", u64::from(ends_together));
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
        stock = stock.and(&calls(&scenario.namespace, CALLER, &url("stock")));
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
    let cluster = &mesh.node.cluster;
    let scale = |replicas: &str| {
        cluster.kubectl_ok(&["scale", "-n", SYSTEM, "deployment/istiod", "--replicas", replicas], "");
    };
    scale("0");
    let stopped = Undo(|| scale("1"));
    mesh.node.until("istiod has ended", || {
        let pods = cluster.get(&["-n", SYSTEM, "pods", "-l", "app=istiod"]);
        pods["items"].as_array().is_some_and(Vec::is_empty)
    });
    for (name, _) in PODS {
        scenario.replace(name, Program::Agent);
    }
    let ours = scenario.recovered("ours", 1);
    // Its certificate and its configuration are used as long as istiod is unavailable.
    let mut later = ours.2.clone();
    for _ in 0..half_minutes() {
        let before = later.succeeded;
        mesh.node.until("our Pod has served for half a minute", || {
            later = later.and(&calls(&scenario.namespace, CALLER, &url("ours")));
            later.succeeded > before + 600
        });
    }
    assert_eq!(later.failed, ours.2.failed, "{later:?}");
    let mut explained = String::new();
    let is_explained = || {
        explained = mesh.explain(&scenario.namespace.name, "pod/ours");
        explained.contains("Envoy uses a stored configuration")
    };
    mesh.node.until("the use of the stored configuration is explained", is_explained);
    assert!(explained.contains("Istio's injector has added the sidecar istio-proxy"), "{explained}");
    scenario.namespace.pod_until("stock", "is not ready", |pod| !condition(pod, "Ready"));
    let away = calls(&scenario.namespace, CALLER, &url("stock"));
    drop(stopped);
    let (_, restarts, back) = scenario.recovered("stock", 1);
    print(
        "the sidecar restarts while istiod is unavailable",
        &[("stock", restarts, away.and(&back)), (ours.0, ours.1, later)],
    );
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

/// Returns how long istiod is unavailable after the restart, at least.
fn half_minutes() -> u32 {
    let set = std::env::vars().find(|(name, _)| name == HALF_MINUTES);
    set.map_or(1, |(_, set)| {
        set.parse().unwrap_or_else(|_| panic!("{HALF_MINUTES} = {set}: must be a number"))
    })
}

impl<'a> Scenario<'a> {
    /// Creates both Pods, with this line of `proxyMetadata`, and their caller, whose own sidecar answers its DNS
    /// queries, and waits until they serve.
    fn start(mesh: &'a Mesh, metadata: &str) -> Self {
        Self::of_pods(mesh, metadata, |_| ())
    }

    /// Like [`Self::start`], with other settings of both Pods.
    fn of_pods(mesh: &'a Mesh, metadata: &str, change: impl Fn(&mut Value)) -> Self {
        let namespace = mesh.create_namespace("faults");
        for (name, agent) in PODS {
            namespace.create(&service(name));
            let mut pod = pod(name, agent, &[application(&[])]);
            pod["metadata"]["annotations"]["proxy.istio.io/config"] =
                format!("proxyMetadata: {{{metadata}}}").into();
            change(&mut pod);
            namespace.create(&pod);
        }
        let urls = PODS.map(|(name, _)| url(name));
        let arguments: Vec<&str> = urls.iter().flat_map(|url| ["--call", url]).collect();
        let mut caller = pod(CALLER, Agent::Mounted, &[application(&arguments)]);
        caller["metadata"]["annotations"]["proxy.istio.io/config"] =
            "proxyMetadata: {ISTIO_META_DNS_CAPTURE: \"true\"}".into();
        namespace.create(&caller);
        for name in ["stock", "ours", CALLER] {
            namespace.pod_until(name, "is ready", |pod| condition(pod, "Ready"));
        }
        let scenario = Self { mesh, namespace };
        for (name, _) in PODS {
            scenario.until_served(name);
            calls(&scenario.namespace, CALLER, &url(name));
        }
        scenario
    }

    /// Waits until ten requests to a Pod have succeeded one after another, and returns all calls since the
    /// last time.
    fn until_served(&self, pod: &str) -> Calls {
        let mut total = Calls::default();
        let mut in_a_row = 0;
        self.mesh.node.until(&format!("{pod} serves"), || {
            let calls = calls(&self.namespace, CALLER, &url(pod));
            in_a_row = if calls.failed == 0 { in_a_row + calls.succeeded } else { 0 };
            total = total.and(&calls);
            in_a_row >= 10
        });
        total
    }

    /// Waits until a Pod is ready, serves, and its sidecar has been restarted at least that often; ours no more than
    /// that. Returns its row. Its application has not been restarted.
    fn recovered(&self, name: &'static str, expected: u64) -> Row {
        let calls = self.until_served(name);
        let what = format!("is ready, and its sidecar was restarted {expected} times");
        let pod = self.namespace.pod_until(name, &what, |pod| {
            condition(pod, "Ready") && restarts(pod, "istio-proxy") >= expected
        });
        let restarted = restarts(&pod, "istio-proxy");
        assert!(name == "stock" || restarted == expected, "{name}: {}", pod["status"]);
        assert_eq!(restarts(&pod, "app"), 0, "{name}: {}", pod["status"]);
        (name, restarted, calls)
    }

    /// Kills a program of a Pod's sidecar, and waits until another one runs.
    fn replace(&self, pod: &str, program: Program) {
        let process = self.kill(pod, program);
        self.until_replaced(pod, program, process);
    }

    fn kill(&self, pod: &str, program: Program) -> Pid {
        let process = self.process(pod, program).expect("the program runs");
        kill(process, Signal::SIGKILL).expect("the program runs");
        process
    }

    fn until_replaced(&self, pod: &str, program: Program, before: Pid) {
        self.mesh.node.until(&format!("another {program:?} of {pod} runs"), || {
            self.process(pod, program).is_some_and(|process| process != before)
        });
    }

    /// Returns the serial numbers of the CA certificates that the Envoy of a Pod uses.
    fn root_certificates(&self, pod: &str) -> BTreeSet<String> {
        let command = ["exec", pod, "-c", "istio-proxy", "--", "pilot-agent", "request", "GET", "certs"];
        let text = self.namespace.kubectl_ok(&command, "");
        // Istio's agent writes its log there too.
        let json = text.find('{').map_or("", |begin| &text[begin..]);
        let answer: Value = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {text}"));
        let all = answer["certificates"].as_array().into_iter().flatten();
        let roots = all.flat_map(|certificate| certificate["ca_cert"].as_array().into_iter().flatten());
        roots.filter_map(|root| root["serial_number"].as_str()).map(str::to_owned).collect()
    }

    fn process(&self, pod: &str, program: Program) -> Option<Pid> {
        sidecar::process(pod, &self.namespace.name, program)
    }
}

fn url(pod: &str) -> String {
    format!("http://{pod}:80/")
}

fn restarts(pod: &Value, name: &str) -> u64 {
    container(pod, name)["restartCount"].as_u64().unwrap_or_default()
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
