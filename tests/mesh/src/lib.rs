//! An Istio mesh on a Kubernetes node: istiod from Istio's own charts, its injector, its agent and its
//! iptables program, and mutual TLS required everywhere.

pub mod machine;
pub mod rollout;
pub mod scenario;
pub mod sidecar;
pub mod workloads;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use istio_tests::istio;
use kit::docker::archive::istios_image;
use kit::envoy::workspace;
use kubernetes_tests::helm::Helm;
use kubernetes_tests::node::{Namespace, Node, on_lasting_thread};
use serde_json::{Value, json};
use workloads::Agent;

/// The label that enables Istio's injection in a namespace.
pub const INJECTED_BY_ISTIO: &str = "istio-injection=enabled";
/// The repository of the image with our agent.
pub const OUR_IMAGE: &str = "app-health-istio";
/// The namespace of istiod.
pub const SYSTEM: &str = "istio-system";

/// A node with Istio. Dropping it ends both.
pub struct Mesh {
    pub node: Node,
}

impl Mesh {
    /// Returns the mesh that the tests of this process share. The calling thread enters the network
    /// namespace of its node.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Option<Mesh>> = OnceLock::new();
        let mesh = SHARED.get_or_init(|| on_lasting_thread(|| Self::start("mesh")));
        let mesh =
            mesh.as_ref().expect("the shared mesh runs; if not, the test that started it reports the error");
        mesh.node.enter();
        mesh
    }

    /// Starts a node and installs Istio on it.
    ///
    /// # Panics
    /// If that is not possible; the message contains the reason.
    pub fn start(name: &str) -> Self {
        let node = Node::start_for_mesh(name);
        let mesh = Self { node };
        mesh.install();
        mesh
    }

    fn install(&self) {
        let cluster = &self.node.cluster;
        let helm = self.helm();
        let shipped =
            fs::read_to_string(workspace().join("envoy-config/istio/values.yaml")).expect("the values");
        let ours = self.node.folder.join("app-health-values.yaml");
        fs::write(&ours, shipped.replace("REGISTRY/", "")).expect("a writable folder");
        let values = self.node.folder.join("istiod-values.json");
        fs::write(&values, settings().to_string()).expect("a writable folder");
        install(&helm, "istio-base", &istio("charts/base"), &[]);
        install(
            &helm,
            "istiod",
            &istio("charts/istio-discovery"),
            &["--values", path(&values), "--values", path(&ours)],
        );
        let rollout = ["rollout", "status", "-n", SYSTEM, "deployment/istiod", "--timeout", "120s"];
        cluster.kubectl_ok(&rollout, "");
        cluster.apply(&strict().to_string());
        self.install_policy(OUR_IMAGE);
    }

    fn helm(&self) -> Helm {
        Helm::new(&self.node.folder.join("helm"), self.node.cluster.kubeconfig("admin"))
    }

    /// Installs the chart app-health-istio with the image of this repository, and waits until Istio's injector and
    /// the policy change Pods: istiod is ready before the API server trusts it.
    ///
    /// # Panics
    /// If that is not possible; the message contains the reason.
    pub fn install_policy(&self, repository: &str) {
        let chart = workspace().join("charts/app-health-istio");
        let set = format!("image.repository={repository}");
        install(&self.helm(), "app-health-istio", &chart, &["--set", &set]);
        let namespace = self.create_namespace("injector");
        let pod = workloads::pod("any", Agent::Mounted, &[workloads::application(&[])]).to_string();
        let create = ["-n", &namespace.name, "create", "--dry-run=server", "-o", "json", "-f", "-"];
        let image = format!("\"{repository}:");
        self.node.until("the sidecar of a new Pod has our agent", || {
            let output = self.node.cluster.kubectl(&create, &pod);
            String::from_utf8_lossy(&output.stdout).contains(&image)
        });
    }

    /// Creates a namespace whose Pods Istio's injector changes.
    ///
    /// # Panics
    /// If it cannot be created.
    pub fn create_namespace(&self, name: &str) -> Namespace<'_> {
        self.node.create_labeled_namespace(name, &[INJECTED_BY_ISTIO])
    }

    /// Runs `app-health explain` as the administrator, and returns stdout.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn explain(&self, namespace: &str, object: &str) -> String {
        let mut command = Command::new(kit::agent::binary_of("app-health"));
        command.env("KUBECONFIG", self.node.cluster.kubeconfig("admin"));
        let output = command.args(["explain", "--namespace", namespace, object]).output();
        String::from_utf8_lossy(&output.expect("app-health starts").stdout).into_owned()
    }

    /// Runs `istioctl` as the administrator, and returns stdout.
    ///
    /// # Panics
    /// If it fails; the message contains stderr.
    pub fn istioctl(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(istio("istioctl"));
        command.arg("--kubeconfig").arg(self.node.cluster.kubeconfig("admin")).args(arguments);
        let output = command.output().expect("istioctl starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let [out, err] = [&output.stdout, &output.stderr].map(|bytes| text(bytes));
        assert!(output.status.success(), "istioctl {arguments:?}: {err}\n{out}");
        out
    }
}

/// Installs or upgrades a chart with these flags.
fn install(helm: &Helm, release: &str, chart: &Path, flags: &[&str]) {
    let place = ["--namespace", SYSTEM, "--create-namespace"];
    let arguments = [&["upgrade", "--install", release, path(chart)], &place[..], flags].concat();
    helm.run(&arguments).unwrap_or_else(|error| panic!("{release} is not installed: {error}"));
}

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Values of Istio's chart: images of the tests, small requests, and, with a stock Envoy, which has no filters of
/// Istio, what it does not support.
fn settings() -> Value {
    let mut settings = json!({
        "global": {
            "hub": "app-health-test", "tag": "mesh", "imagePullPolicy": "IfNotPresent",
            "proxy": {"resources": {"requests": {"cpu": "10m", "memory": "40Mi"}}},
        },
        "autoscaleEnabled": false,
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}},
    });
    if istios_image().is_none() {
        settings["env"] =
            json!({"PILOT_ENABLE_METADATA_EXCHANGE": "false", "PILOT_ENABLE_ALPN_FILTER": "false"});
        settings["telemetry"] = json!({"enabled": false});
    }
    settings
}

/// Mutual TLS is required in the whole mesh.
fn strict() -> Value {
    json!({
        "apiVersion": "security.istio.io/v1", "kind": "PeerAuthentication",
        "metadata": {"name": "default", "namespace": SYSTEM}, "spec": {"mtls": {"mode": "STRICT"}},
    })
}
