//! Tests of the webhook and of the shipped manifests with an API server. The steps run in order,
//! and each step leaves the webhook running.
//!
//! The webhook's Service has the type ExternalName with the name `localhost`. The API server
//! resolves it like any other and expects the Service's name in the certificate.

mod dial;
mod late;
mod manifests;
mod outages;
mod pods;

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Output;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kit::agent::binary_of;
use kit::reserved_port::ReservedPort;
use kit::wait;
use kubernetes_tests::{Cluster, Process, command};
use serde_json::{Value, json};

use crate::http_get;

/// The name of a step, and the function that runs it.
type Step = (&'static str, fn(&mut Fixture));

pub(crate) const STEPS: [Step; 14] = [
    ("manifests are accepted", manifests::manifests),
    ("the webhook becomes ready with only its own permissions", manifests::ready),
    ("a Pod is injected and its warnings are shown", pods::injected),
    ("a dry run stores nothing", pods::dry_run),
    ("namespaces and labels select the Pods to inject", pods::selected),
    ("Pod Security restricted accepts the sidecar", pods::restricted),
    ("goldens are accepted", pods::goldens),
    ("kubectl parses the written YAML to the same values", pods::strings),
    ("a container of a later webhook is rewritten", late::reinvoked),
    ("the failure policy applies to a hanging webhook", outages::policy),
    ("a removed caBundle is restored", outages::ca_bundle_removed),
    ("an overloaded API server delays a webhook, and ends none", outages::overloaded),
    ("a CA rotation under load fails no review", outages::rotated),
    ("without replicas other Pods start, and a new replica recovers", outages::no_replicas),
];

const NAMESPACE: &str = "app-health-system";
const CONFIGURATION: &str = "mutatingwebhookconfiguration/app-health";

/// The cluster and the webhook. The webhook is dropped first, because its log is in the cluster's
/// directory.
pub(crate) struct Fixture {
    webhook: Option<Process>,
    cluster: Arc<Cluster>,
    /// The API server connects to `localhost`, so the address cannot be another one.
    address: ReservedPort,
    monitoring: ReservedPort,
}

impl Fixture {
    pub(crate) fn new(cluster: Cluster) -> Self {
        let [address, monitoring] = [(); 2].map(|()| ReservedPort::new(Ipv4Addr::LOCALHOST.into()));
        Self { cluster: Arc::new(cluster), webhook: None, address, monitoring }
    }

    fn start(&self, name: &str, address: &ReservedPort, monitoring: &ReservedPort) -> Process {
        self.start_with(name, address, monitoring, &self.cluster.kubeconfig("webhook"))
    }

    fn start_with(
        &self,
        name: &str,
        address: &ReservedPort,
        monitoring: &ReservedPort,
        kubeconfig: &Path,
    ) -> Process {
        Process::start(
            command(&binary_of("app-health"))
                .arg("webhook")
                .args([
                    "--address",
                    &address.address.to_string(),
                    "--monitoring-address",
                    &monitoring.address.to_string(),
                    "--shutdown-grace",
                    "1s",
                ])
                .env("KUBECONFIG", kubeconfig)
                .env("POD_NAMESPACE", NAMESPACE),
            &self.cluster.folder.join(name),
        )
    }

    fn wait_until(&self, what: &str, done: impl Fn() -> bool) {
        let logs = || ["webhook.log", "api-server.log"].map(|log| self.cluster.log(log)).join("\n");
        wait::until_blocking(|| format!("{what}: {}", logs()), done);
    }

    fn is_ready(&self, monitoring: &ReservedPort) -> bool {
        http_get(monitoring.address, "/healthz/ready").status == 200
    }

    fn bundle(&self) -> String {
        let configuration = self.cluster.get(&[CONFIGURATION]);
        let bundle = configuration["webhooks"][0]["clientConfig"]["caBundle"].as_str().unwrap_or_default();
        String::from_utf8(STANDARD.decode(bundle).expect("base64")).expect("PEM")
    }

    fn create(&self, pod: &Value) -> Output {
        self.cluster.kubectl(&["create", "-f", "-"], &pod.to_string())
    }

    /// Creates a Pod with `--dry-run=server`, and returns it, or the error of the API server.
    fn dry_run(&self, pod: &Value) -> Result<Value, String> {
        let arguments = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
        let output = self.cluster.kubectl(&arguments, &pod.to_string());
        match output.status.success() {
            true => Ok(serde_json::from_slice(&output.stdout).expect("JSON")),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }
}

fn pod(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [{
            "name": "app", "image": "shop:1", "ports": [{"name": "http", "containerPort": 8080}],
            "livenessProbe": {"httpGet": {"path": "/live", "port": "http"}},
        }]},
    })
}

fn is_injected(pod: &Value) -> bool {
    let path = &pod["spec"]["containers"][0]["livenessProbe"]["httpGet"]["path"];
    let there = pod["spec"]["initContainers"][0]["name"] == "app-health-proxy";
    assert_eq!(there, path == "/app-health/app/livez", "half an injection: {pod}");
    there
}
