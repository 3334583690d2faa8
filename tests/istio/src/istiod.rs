//! istiod beside an API server, with the group and the service of the tests.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use kit::envoy::folder;
use kit::vm::certificates::{Authority, DISCOVERY_NAME, Files};
use kit::vm::documents::{GROUP, NAMESPACE, group, probe, service};
use kit::{caller, net, wait};
use kubernetes_tests::{Cluster, Options, Process, command};
use nix::sys::signal::{Signal, kill};
use serde_json::Value;

use crate::istio;

/// The namespace of istiod, which must exist for its leases.
const SYSTEM: &str = "istio-system";

/// A running or stopped istiod. It is killed on drop, and the API server with it.
pub struct Istiod {
    pub ip: IpAddr,
    /// The folder with certificates, configuration and log.
    pub folder: PathBuf,
    /// The authority that istiod trusts on 15012, and that has signed its certificate.
    pub authority: Authority,
    pub cluster: Cluster,
    /// Further arguments of the next process.
    pub arguments: Vec<String>,
    /// Further settings of the mesh for the next process, as YAML.
    pub mesh: String,
    files: Files,
    /// Whether Envoys use mutual TLS between each other.
    auto_mtls: bool,
    process: Option<Process>,
}

impl Istiod {
    /// Starts an API server with Istio's types and the objects of the tests, and istiod.
    pub async fn start(name: &str) -> Self {
        Self::start_with(name, false).await
    }

    /// Like [`Istiod::start`], with mutual TLS between Envoys, as in Istio's default.
    pub async fn start_with_auto_mtls(name: &str) -> Self {
        Self::start_with(name, true).await
    }

    async fn start_with(name: &str, auto_mtls: bool) -> Self {
        let folder = folder(name);
        let cluster = Cluster::start(&folder.join("cluster"), Options::default());
        cluster.kubectl_ok(&["create", "-f", istio("crds.yaml").to_str().expect("a path")], "");
        for namespace in [SYSTEM, NAMESPACE] {
            cluster.create_namespace(namespace, &[]);
        }
        cluster.kubectl_ok(&["create", "serviceaccount", GROUP, "-n", NAMESPACE], "");
        let is_served = async || cluster.kubectl(&["get", "workloadgroups,serviceentries", "-A"], "");
        wait::until("the API server serves Istio's types", async || is_served().await.status.success()).await;
        for object in [group(&probe()), service()] {
            cluster.apply(&object.to_string());
        }
        let authority = Authority::new();
        let ip = net::loopback();
        let files = authority.issue(&folder, "istiod", DISCOVERY_NAME);
        // An agent of Istio verifies the address of its certificate authority.
        let issued = authority.sign_all(&[DISCOVERY_NAME, &ip.to_string()]);
        for (file, text) in [(&files.certificate, issued.certificate), (&files.key, issued.key)] {
            fs::write(file, text).expect("a writable folder");
        }
        let mut istiod = Self {
            ip,
            folder,
            authority,
            cluster,
            arguments: Vec::new(),
            mesh: String::new(),
            files,
            auto_mtls,
            process: None,
        };
        istiod.start_process(&[]).await;
        istiod
    }

    /// Returns the address of a port: 15010 for plaintext, 15012 for TLS.
    pub fn address(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.ip, port)
    }

    /// Starts istiod with these additional environment variables, and waits until it is ready.
    pub async fn start_process(&mut self, environment: &[(&str, &str)]) {
        let mesh = self.folder.join("mesh.yaml");
        fs::write(&mesh, format!("enableAutoMtls: {}\n{}", self.auto_mtls, self.mesh))
            .expect("a writable folder");
        let (monitoring, http) = (self.address(15014), self.address(8080));
        let mut command = command(&istio("pilot-discovery"));
        command.args(["discovery", "--registries", "Kubernetes", "--httpsAddr", ""]);
        command.arg("--meshConfig").arg(&mesh).arg("--kubeconfig").arg(self.cluster.kubeconfig("admin"));
        for (flag, address) in [
            ("--httpAddr", http),
            ("--monitoringAddr", monitoring),
            ("--grpcAddr", self.address(15010)),
            ("--secureGRPCAddr", self.address(15012)),
        ] {
            command.arg(flag).arg(address.to_string());
        }
        command.arg("--ctrlz_address").arg(self.ip.to_string());
        command.arg("--tlsCertFile").arg(&self.files.certificate).arg("--tlsKeyFile").arg(&self.files.key);
        command.arg("--caCertFile").arg(&self.files.authority).args(&self.arguments);
        command.current_dir(&self.folder).env_clear();
        command.envs(std::env::vars_os().filter(|(name, _)| name == "PATH"));
        for (name, value) in [
            ("PILOT_CERT_PROVIDER", "istiod"),
            ("CLUSTER_ID", "Kubernetes"),
            ("POD_NAMESPACE", SYSTEM),
            ("POD_NAME", "istiod"),
            ("REVISION", "default"),
            ("INJECT_ENABLED", "false"),
            ("ENABLE_LEADER_ELECTION", "false"),
            // A stock Envoy has no filters of Istio.
            ("PILOT_ENABLE_METADATA_EXCHANGE", "false"),
            ("PILOT_ENABLE_ALPN_FILTER", "false"),
        ] {
            command.env(name, value);
        }
        command.envs(environment.iter().copied());
        self.process = Some(Process::start(&mut command, &self.folder.join("istiod.log")));
        let is_ready = async || {
            let process = self.process.as_ref().expect("just started");
            assert!(!process.has_ended(), "istiod has exited:\n{}", self.log());
            caller::get(http, "/ready", &[]).await.status == 200
        };
        wait::until_or(|| format!("istiod is ready:\n{}", self.log()), is_ready).await;
    }

    /// Kills istiod with SIGKILL.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Stops istiod with SIGSTOP, or lets it continue: its connections stay open meanwhile.
    ///
    /// # Panics
    /// If it does not run.
    pub fn pause(&self, is_paused: bool) {
        let signal = if is_paused { Signal::SIGSTOP } else { Signal::SIGCONT };
        kill(self.process.as_ref().expect("istiod runs").pid(), signal).expect("istiod runs");
    }

    /// Returns the end of the log.
    pub fn log(&self) -> String {
        let log = fs::read_to_string(self.folder.join("istiod.log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(40).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    /// Returns the WorkloadEntry with this address, `Null` if there is none.
    pub fn entry(&self, address: IpAddr) -> Value {
        let entries = self.cluster.get(&["workloadentries", "-n", NAMESPACE]);
        let mut entries = entries["items"].as_array().into_iter().flatten();
        entries.find(|entry| entry["spec"]["address"] == address.to_string()).cloned().unwrap_or_default()
    }

    /// Returns the status of the condition `Healthy` of the entry with this address.
    pub fn condition(&self, address: IpAddr) -> Option<String> {
        let entry = self.entry(address);
        let mut conditions = entry.pointer("/status/conditions")?.as_array()?.iter();
        let healthy = conditions.find(|condition| condition["type"] == "Healthy")?;
        healthy["status"].as_str().map(str::to_owned)
    }

    /// Returns the file with the authority that has signed istiod's certificate.
    pub fn authority_file(&self) -> &Path {
        &self.files.authority
    }

    /// Writes the root certificate with which istiod signs those of its workloads to a file.
    pub fn write_workload_root(&self, file: &Path) {
        let template = "go-template={{ index .data \"ca-cert.pem\" | base64decode }}";
        let arguments = ["get", "secret", "istio-ca-secret", "-n", SYSTEM, "-o", template];
        fs::write(file, self.cluster.kubectl_ok(&arguments, "").0).expect("a writable folder");
    }

    /// Restarts istiod so that it accepts the certificates of its workloads from clients, as in a mesh with one CA.
    pub async fn trust_workloads(&mut self) {
        let root = self.folder.join("workload-root.pem");
        self.write_workload_root(&root);
        let texts = [&self.files.authority, &root].map(|file| fs::read_to_string(file).expect("a file"));
        fs::write(&self.files.authority, texts.concat()).expect("a writable folder");
        self.kill();
        self.start_process(&[]).await;
    }

    /// Writes a token of the service account of the machines to a file.
    pub fn write_token(&self, file: &Path) {
        let arguments = ["create", "token", GROUP, "-n", NAMESPACE, "--audience", "istio-ca"];
        let (token, _) = self.cluster.kubectl_ok(&arguments, "");
        fs::write(file, token).expect("a writable folder");
    }
}
