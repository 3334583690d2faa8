//! Pods with either agent that are called during a fault.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use kubernetes_tests::node::{Namespace, condition, container};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::sidecar::{self, Program};
use crate::workloads::{Agent, Calls, application, calls, pod, service};
use crate::{Mesh, SYSTEM};

/// The Pods that are compared.
pub const PODS: [(&str, Agent); 2] = [("stock", Agent::Stock), ("ours", Agent::Mounted)];
const CALLER: &str = "caller";
/// Requests of the caller in a second.
const RATE: u64 = 20;
/// Seconds without a failure after which no call of an earlier time is left: longer than a call may take.
const SETTLED: u64 = 6;

/// Pods that have had no fault yet, so that kubelet does not delay a restart, and their caller.
pub struct Scenario<'a> {
    mesh: &'a Mesh,
    pub namespace: Namespace<'a>,
}

/// Ends a fault, also if the test fails.
pub struct Undo<F: Fn()>(pub F);

impl<F: Fn()> Drop for Undo<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// A Pod, how often its sidecar has been restarted, and what its caller saw.
pub type Row = (&'static str, u64, Calls);

impl<'a> Scenario<'a> {
    /// Creates both Pods, with this line of `proxyMetadata`, and their caller, whose own sidecar answers its DNS
    /// queries, and waits until they serve.
    ///
    /// # Panics
    /// If they do not.
    pub fn start(mesh: &'a Mesh, metadata: &str) -> Self {
        Self::of_pods(mesh, metadata, |_| ())
    }

    /// Like [`Self::start`], with other settings of both Pods.
    ///
    /// # Panics
    /// If they do not serve.
    pub fn of_pods(mesh: &'a Mesh, metadata: &str, change: impl Fn(&mut Value)) -> Self {
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
            scenario.calls(name);
        }
        scenario
    }

    /// Waits until ten requests to a Pod have succeeded one after another, and returns all calls since the
    /// last time.
    ///
    /// # Panics
    /// If they do not.
    pub fn until_served(&self, pod: &str) -> Calls {
        let mut total = Calls::default();
        let mut in_a_row = 0;
        self.mesh.node.until(&format!("{pod} serves"), || {
            let calls = self.calls(pod);
            in_a_row = if calls.failed == 0 { in_a_row + calls.succeeded } else { 0 };
            total = total.and(&calls);
            in_a_row >= 10
        });
        total
    }

    /// Waits until a Pod is ready, serves, and its sidecar has been restarted at least that often; ours no more than
    /// that. Returns its row. Its application has not been restarted.
    ///
    /// # Panics
    /// If one of these does not hold.
    pub fn recovered(&self, name: &'static str, expected: u64) -> Row {
        self.recovered_after(name, expected..=if name == "stock" { u64::MAX } else { expected })
    }

    /// Like [`Self::recovered`], after this many restarts.
    ///
    /// # Panics
    /// If one of these does not hold.
    pub fn recovered_after(&self, name: &'static str, expected: RangeInclusive<u64>) -> Row {
        let calls = self.until_served(name);
        let what = format!("is ready, and its sidecar was restarted {expected:?} times");
        let pod = self.namespace.pod_until(name, &what, |pod| {
            condition(pod, "Ready") && restarts(pod, "istio-proxy") >= *expected.start()
        });
        let restarted = restarts(&pod, "istio-proxy");
        assert!(expected.contains(&restarted), "{name}: {}", pod["status"]);
        assert_eq!(restarts(&pod, "app"), 0, "{name}: {}", pod["status"]);
        (name, restarted, calls)
    }

    /// Kills a program of a Pod's sidecar, and waits until another one runs.
    ///
    /// # Panics
    /// If none runs.
    pub fn replace(&self, pod: &str, program: Program) {
        let process = self.kill(pod, program);
        self.until_replaced(pod, program, process);
    }

    /// Kills a program of a Pod's sidecar, and returns its process.
    ///
    /// # Panics
    /// If it does not run.
    pub fn kill(&self, pod: &str, program: Program) -> Pid {
        let process = self.process(pod, program).expect("the program runs");
        kill(process, Signal::SIGKILL).expect("the program runs");
        process
    }

    /// Waits until another process than `before` runs.
    ///
    /// # Panics
    /// If none does.
    pub fn until_replaced(&self, pod: &str, program: Program, before: Pid) {
        self.mesh.node.until(&format!("another {program:?} of {pod} runs"), || {
            self.process(pod, program).is_some_and(|process| process != before)
        });
    }

    /// Returns the serial numbers of the CA certificates that the Envoy of a Pod uses.
    ///
    /// # Panics
    /// If Envoy does not say them.
    pub fn root_certificates(&self, pod: &str) -> BTreeSet<String> {
        let command = ["exec", pod, "-c", "istio-proxy", "--", "pilot-agent", "request", "GET", "certs"];
        let text = self.namespace.kubectl_ok(&command, "");
        // Istio's agent writes its log there too.
        let json = text.find('{').map_or("", |begin| &text[begin..]);
        let answer: Value = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {text}"));
        let all = answer["certificates"].as_array().into_iter().flatten();
        let roots = all.flat_map(|certificate| certificate["ca_cert"].as_array().into_iter().flatten());
        roots.filter_map(|root| root["serial_number"].as_str()).map(str::to_owned).collect()
    }

    /// Returns the process of a program of a Pod's sidecar.
    pub fn process(&self, pod: &str, program: Program) -> Option<Pid> {
        sidecar::process(pod, &self.namespace.name, program)
    }

    /// Returns the calls of a Pod since the last time.
    pub fn calls(&self, pod: &str) -> Calls {
        calls(&self.namespace, CALLER, &url(pod))
    }

    /// Restarts the containers of both sidecars while istiod is unavailable, which it then stays for this time, in
    /// seconds of calls. Our Pod uses its certificate and its configuration as long; the other one waits for istiod.
    /// Calls `meanwhile` before istiod is back.
    ///
    /// # Panics
    /// If our Pod does not serve, or loses a request after its restart.
    pub fn restart_without_istiod(&self, seconds: u64, meanwhile: impl FnOnce()) -> [Row; 2] {
        let cluster = &self.mesh.node.cluster;
        let scale = |replicas: &str| {
            cluster.kubectl_ok(&["scale", "-n", SYSTEM, "deployment/istiod", "--replicas", replicas], "");
        };
        scale("0");
        let stopped = Undo(|| scale("1"));
        self.mesh.node.until("istiod has ended", || {
            let pods = cluster.get(&["-n", SYSTEM, "pods", "-l", "app=istiod"]);
            pods["items"].as_array().is_some_and(Vec::is_empty)
        });
        for (name, _) in PODS {
            self.replace(name, Program::Agent);
        }
        let (ours, restarts, after_restart) = self.recovered("ours", 1);
        let mut all = after_restart;
        // Calls of the time of the restart end later.
        let mut without_failure = Calls::default();
        self.mesh.node.until("calls of the restart have ended", || {
            let calls = self.calls(ours);
            all = all.and(&calls);
            without_failure = if calls.failed == 0 { without_failure.and(&calls) } else { Calls::default() };
            without_failure.succeeded > SETTLED * RATE
        });
        let mut later = Calls::default();
        while later.succeeded < seconds * RATE {
            let before = later.succeeded;
            self.mesh.node.until("our Pod serves", || {
                later = later.and(&self.calls(ours));
                later.succeeded > before + RATE
            });
        }
        assert_eq!(later.failed, 0, "{later:?}");
        meanwhile();
        self.namespace.pod_until("stock", "is not ready", |pod| !condition(pod, "Ready"));
        let unavailable = self.calls("stock");
        drop(stopped);
        let (stock, stock_restarts, back) = self.recovered("stock", 1);
        [(stock, stock_restarts, unavailable.and(&back)), (ours, restarts, all.and(&later))]
    }
}

fn url(pod: &str) -> String {
    format!("http://{pod}:80/")
}

/// Returns how often a container of a Pod has been restarted.
pub fn restarts(pod: &Value, name: &str) -> u64 {
    container(pod, name)["restartCount"].as_u64().unwrap_or_default()
}
