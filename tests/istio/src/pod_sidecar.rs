//! Our agent in the place of Istio's, with the files and variables that the injector gives a Pod.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use kit::agent::binary_of;
use kit::envoy::Version;
use kit::process;
use kit::reserved_port::ReservedPort;
use kit::vm::documents::{GROUP, NAMESPACE};
use kit::vm::stored_xds;
use kit::{caller, wait};
use kubernetes_tests::{Process, command};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::net::UdpSocket;

use crate::istio;
use crate::istiod::Istiod;
use crate::program::Program;

/// The name of a Pod.
pub const POD: &str = "web-1";
/// The label with which the injector says that a Pod accepts mutual TLS.
const TLS_MODE: &str = "security.istio.io/tlsMode";

/// Runs a program where `$1` is mounted as the ConfigMap with certificate revocation lists. Its path is absolute.
const WITH_REVOCATION_LISTS: &str = r#"set -eu
mount -t tmpfs none /var/run
mkdir -p /var/run/secrets/istio/crl
mount --bind "$1" /var/run/secrets/istio/crl
shift
exec "$@""#;

/// A Pod's container `istio-proxy`; it is killed on drop.
pub struct PodSidecar {
    program: Program,
    pub folder: PathBuf,
    environment: Vec<(String, String)>,
    /// A folder that is mounted in place of the ConfigMap with certificate revocation lists; that needs root.
    pub revocation_lists: Option<PathBuf>,
    process: Option<Process>,
    pub status: SocketAddr,
    admin: SocketAddr,
    /// Where the agent answers DNS queries.
    dns: SocketAddr,
    _ports: Vec<ReservedPort>,
}

impl PodSidecar {
    /// Creates the Pod's object with this address, and starts the agent.
    pub fn start(istiod: &Istiod, ip: IpAddr, variables: &[(&str, &str)]) -> Self {
        Self::start_as(Program::Ours, POD, istiod, ip, variables)
    }

    /// Like [`Self::start`], with another agent or another name.
    pub fn start_as(
        program: Program,
        name: &str,
        istiod: &Istiod,
        ip: IpAddr,
        variables: &[(&str, &str)],
    ) -> Self {
        let mut pod = Self::prepare(program, name, istiod, ip, variables);
        pod.start_container();
        pod
    }

    /// Like [`Self::start_as`], but does not start the agent.
    pub fn prepare(
        program: Program,
        name: &str,
        istiod: &Istiod,
        ip: IpAddr,
        variables: &[(&str, &str)],
    ) -> Self {
        create_pod(istiod, name, ip);
        let folder = istiod.folder.join(name);
        for name in ["etc/istio/pod", "etc/istio/proxy", "var/run/secrets/istio", "var/run/secrets/tokens"] {
            fs::create_dir_all(folder.join(name)).expect("a writable folder");
        }
        fs::create_dir_all(folder.join("var/run/secrets/workload-spiffe-uds")).expect("a writable folder");
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("a writable folder");
        write("etc/istio/pod/labels", &format!("app=\"{GROUP}\"\n{TLS_MODE}=\"istio\"\n"));
        write("etc/istio/pod/annotations", "");
        fs::copy(istiod.authority_file(), folder.join("var/run/secrets/istio/root-cert.pem"))
            .expect("a file");
        istiod.write_token(&folder.join("var/run/secrets/tokens/istio-token"));
        let ports: Vec<ReservedPort> =
            (0..6).map(|_| ReservedPort::new(Ipv4Addr::UNSPECIFIED.into())).collect();
        let [status, admin, envoy_status, prometheus, local, dns] =
            [0, 1, 2, 3, 4, 5].map(|index: usize| ports[index].port());
        let config = json!({
            "discoveryAddress": istiod.address(15012).to_string(),
            "statusPort": status,
            "proxyAdminPort": admin,
            "binaryPath": Version::Newest.binary(),
        });
        let mut environment: Vec<(String, String)> = [
            ("INSTANCE_IP", ip.to_string()),
            ("POD_NAME", name.to_owned()),
            ("POD_NAMESPACE", NAMESPACE.to_owned()),
            ("SERVICE_ACCOUNT", GROUP.to_owned()),
            ("TRUST_DOMAIN", "cluster.local".to_owned()),
            ("PILOT_CERT_PROVIDER", "istiod".to_owned()),
            ("CA_ADDR", istiod.address(15012).to_string()),
            ("ISTIO_META_CLUSTER_ID", "Kubernetes".to_owned()),
            // Redirected traffic would need listeners on all addresses of this machine.
            ("ISTIO_META_INTERCEPTION_MODE", "NONE".to_owned()),
            ("ISTIO_META_ISTIO_VERSION", "1.31.0".to_owned()),
            ("ISTIO_BOOTSTRAP", istio("envoy_bootstrap.json").display().to_string()),
            ("ENVOY_STATUS_PORT", envoy_status.to_string()),
            ("ENVOY_PROMETHEUS_PORT", prometheus.to_string()),
            ("APP_HEALTH_LOCAL_ADDRESS", format!("127.0.0.1:{local}")),
            ("APP_HEALTH_FALLBACK", "off".to_owned()),
            ("ISTIO_META_DNS_CAPTURE", "true".to_owned()),
            ("DNS_PROXY_ADDR", format!("{ip}:{dns}")),
            ("PROXY_CONFIG", config.to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        environment.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let [status, admin] = [status, admin].map(|port| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port));
        let dns = SocketAddr::new(ip, dns);
        Self {
            program,
            folder,
            environment,
            revocation_lists: None,
            process: None,
            status,
            admin,
            dns,
            _ports: ports,
        }
    }

    /// Starts the agent with the files of the earlier one, as kubelet restarts a container.
    pub fn start_container(&mut self) {
        let mut command = match &self.revocation_lists {
            None => command(&self.program.path()),
            Some(folder) => {
                let mut command = command(Path::new("unshare"));
                command.args(["--mount", "sh", "-c", WITH_REVOCATION_LISTS, "sh"]);
                command.arg(folder).arg(self.program.path());
                command
            }
        };
        command.args(["proxy", "sidecar", "--domain", &format!("{NAMESPACE}.svc.cluster.local")]);
        command.args(["--proxyLogLevel=warning", "--proxyComponentLogLevel=misc:error"]);
        command.arg("--log_output_level=default:info");
        command.current_dir(&self.folder).env_clear();
        command.envs(std::env::vars_os().filter(|(name, _)| name == "PATH"));
        command.envs(self.environment.iter().cloned());
        self.process = Some(Process::start(&mut command, &self.folder.join("agent.log")));
    }

    /// Kills the agent and its Envoy with SIGKILL.
    pub fn kill(&mut self) {
        let Some(process) = self.process.take() else { return };
        let children = process::children(process.pid());
        drop(process);
        for child in children {
            // The Envoy of our agent has ended with it.
            let _ = kill(child, Signal::SIGKILL);
        }
    }

    /// Waits until the agent has exited, and returns its exit code.
    pub fn end(&mut self) -> Option<i32> {
        self.process.take().expect("the agent runs").wait()
    }

    pub fn has_ended(&self) -> bool {
        self.process.as_ref().expect("the agent has been started").has_ended()
    }

    pub fn pid(&self) -> Pid {
        self.process.as_ref().expect("the agent runs").pid()
    }

    /// The socket on which Envoy asks for secrets.
    pub fn secrets(&self) -> PathBuf {
        self.folder.join("var/run/secrets/workload-spiffe-uds/socket")
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("agent.log")).unwrap_or_default()
    }

    /// Returns whether the stored configuration contains these texts.
    pub fn has_stored(&self, texts: &[String]) -> bool {
        let stored = stored_xds::text(&self.folder.join("etc/istio/proxy/app-health/xds-cache"));
        texts.iter().all(|text| stored.contains(text))
    }

    pub async fn until_ready(&self) {
        let is_ready = async || caller::get(self.status, "/healthz/ready", &[]).await.status == 200;
        wait::until_or(|| format!("the sidecar is ready:\n{}", self.log()), is_ready).await;
    }

    /// Returns the page with the names that the agent answers.
    pub async fn names(&self) -> String {
        caller::get(self.status, "/debug/ndsz", &[]).await.text()
    }

    /// Returns the IPv4 addresses that the agent says for a name.
    pub async fn look_up(&self, name: &str) -> Vec<Ipv4Addr> {
        let mut query = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            query.push(u8::try_from(label.len()).expect("a label"));
            query.extend_from_slice(label.as_bytes());
        }
        query.extend_from_slice(&[0, 0, 1, 0, 1]);
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
        socket.send_to(&query, self.dns).await.expect("a socket");
        let mut response = vec![0; 512];
        let received = tokio::time::timeout(wait::timeout(), socket.recv(&mut response)).await;
        let length = received.expect("a response").expect("a response");
        // Each record ends with its address, and has no alias here.
        let records = &response[query.len()..length];
        let size = records.len() / usize::from(response[7].max(1));
        let address = |record: &[u8]| record.last_chunk::<4>().map(|octets| Ipv4Addr::from(*octets));
        records.chunks(size.max(1)).filter_map(address).collect()
    }

    /// Returns the metrics of the agent, of Envoy and of the application.
    pub async fn metrics(&self) -> String {
        caller::get(self.status, "/stats/prometheus", &[]).await.text()
    }

    /// Returns a page of Envoy's admin interface.
    pub async fn admin(&self, path: &str) -> String {
        caller::get(self.admin, path, &[]).await.text()
    }

    /// The certificates that Envoy has in use: their URIs and expiry.
    pub async fn certificates(&self) -> Vec<Value> {
        let page: Value = serde_json::from_str(&self.admin("/certs").await).unwrap_or_default();
        let certificates = page["certificates"].as_array().cloned().unwrap_or_default();
        certificates.iter().filter_map(|found| found.pointer("/cert_chain/0").cloned()).collect()
    }
}

impl Drop for PodSidecar {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Creates a Pod that runs, with this address.
fn create_pod(istiod: &Istiod, name: &str, ip: IpAddr) {
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": GROUP, TLS_MODE: "istio"}},
        "spec": {"serviceAccountName": GROUP, "containers": [{"name": "app", "image": "app"}]},
    });
    istiod.cluster.apply(&pod.to_string());
    let status = json!({"status": {
        "phase": "Running",
        "podIP": ip.to_string(),
        "podIPs": [{"ip": ip.to_string()}],
        "conditions": [{"type": "Ready", "status": "True"}],
    }});
    let status = status.to_string();
    let arguments =
        ["patch", "pod", name, "-n", NAMESPACE, "--subresource=status", "--type=merge", "-p", &status];
    istiod.cluster.kubectl_ok(&arguments, "");
}

/// Returns a folder with a program of the name `pilot-agent` that is ours.
pub fn called_pilot_agent(folder: &Path) -> PathBuf {
    fs::create_dir_all(folder).expect("a writable folder");
    let program = folder.join("pilot-agent");
    let _ = fs::remove_file(&program);
    std::os::unix::fs::symlink(binary_of("app-health-agent"), &program).expect("a writable folder");
    program
}
