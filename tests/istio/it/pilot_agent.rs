//! Istio's agent, or ours in its place, on a virtual machine, with its Envoy and certificates from files.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use istio_tests::istio;
use istio_tests::istiod::Istiod;
use istio_tests::program::Program;
use kit::envoy::Version;
use kit::process;
use kit::reserved_port::ReservedPort;
use kit::vm::certificates::{DISCOVERY_NAME, Files};
use kit::vm::documents::{GROUP, NAMESPACE};
use kubernetes_tests::{Process, command};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

pub(crate) struct Settings<'a> {
    pub(crate) program: Program,
    pub(crate) ip: IpAddr,
    /// The address of the discovery server.
    pub(crate) discovery: SocketAddr,
    /// The CA of the discovery server.
    pub(crate) authority: &'a Path,
    pub(crate) identity: Identity<'a>,
    /// The `readinessProbe` of its `PROXY_CONFIG`; `Null` for none.
    pub(crate) probe: &'a Value,
}

/// Where the certificate of a pilot-agent comes from.
pub(crate) enum Identity<'a> {
    /// Files that another program renews.
    Files(&'a Files),
    /// istiod, for the token of a service account; pilot-agent writes it to its folder `certs`.
    Istiod(&'a Istiod),
    /// istiod, which has no token of this machine, but for its first start. Certificates are valid for a day.
    Certificate(&'a Istiod),
}

/// A running pilot-agent; it is killed on drop, and its Envoy with it.
pub(crate) struct PilotAgent {
    folder: PathBuf,
    process: Option<Process>,
    /// The Envoys of agents that were killed.
    envoys: Vec<Pid>,
    /// The address of the status port.
    pub(crate) status: SocketAddr,
    _ports: Vec<ReservedPort>,
}

impl PilotAgent {
    /// Starts pilot-agent with its files below `folder`.
    pub(crate) fn start(folder: &Path, settings: &Settings) -> Self {
        let Settings { program, ip, discovery, authority, identity, probe } = settings;
        let folder = folder.join("pilot-agent");
        std::fs::create_dir_all(&folder).expect("a writable folder");
        // pilot-agent and its Envoy listen on all addresses.
        let ports: Vec<ReservedPort> =
            (0..6).map(|_| ReservedPort::new(Ipv4Addr::UNSPECIFIED.into())).collect();
        let [status, admin, envoy_status, prometheus, metrics, local] =
            [0, 1, 2, 3, 4, 5].map(|index: usize| ports[index].port());
        let mut config = json!({
            "discoveryAddress": discovery.to_string(),
            "statusPort": status,
            "proxyAdminPort": admin,
            "binaryPath": Version::Newest.binary(),
            "configPath": folder.join("proxy"),
        });
        if !probe.is_null() {
            config["readinessProbe"] = (*probe).clone();
        }
        let mut command = command(&program.path());
        command.args([
            "proxy",
            "sidecar",
            "--domain",
            "shop.svc.cluster.local",
            "--proxyLogLevel",
            "warning",
        ]);
        command.current_dir(&folder).env_clear();
        command.envs(std::env::vars_os().filter(|(name, _)| name == "PATH"));
        for (name, value) in [
            ("INSTANCE_IP", ip.to_string()),
            ("POD_NAMESPACE", NAMESPACE.to_owned()),
            ("SERVICE_ACCOUNT", GROUP.to_owned()),
            ("ISTIO_META_AUTO_REGISTER_GROUP", GROUP.to_owned()),
            ("ISTIO_META_CLUSTER_ID", "Kubernetes".to_owned()),
            ("ISTIO_BOOTSTRAP", istio("envoy_bootstrap.json").display().to_string()),
            ("ISTIOD_SAN", DISCOVERY_NAME.to_owned()),
            ("XDS_ROOT_CA", authority.display().to_string()),
            ("ENVOY_STATUS_PORT", envoy_status.to_string()),
            ("ENVOY_PROMETHEUS_PORT", prometheus.to_string()),
            ("APP_HEALTH_LOCAL_ADDRESS", format!("127.0.0.1:{local}")),
            ("APP_HEALTH_FALLBACK", "off".to_owned()),
        ] {
            command.env(name, value);
        }
        match identity {
            Identity::Files(files) => {
                command.env("FILE_MOUNTED_CERTS", "true");
                config["proxyMetadata"] = json!({
                    "ISTIO_META_TLS_CLIENT_ROOT_CERT": files.authority,
                    "ISTIO_META_TLS_CLIENT_CERT_CHAIN": files.certificate,
                    "ISTIO_META_TLS_CLIENT_KEY": files.key,
                });
            }
            Identity::Istiod(istiod) | Identity::Certificate(istiod) => {
                let (certs, tokens) = (folder.join("certs"), folder.join("var/run/secrets/tokens"));
                for folder in [&certs, &tokens] {
                    std::fs::create_dir_all(folder).expect("a writable folder");
                }
                let token = tokens.join("istio-token");
                let is_first = !certs.join("cert-chain.pem").exists();
                match identity {
                    Identity::Certificate(_) if !is_first => {
                        std::fs::write(token, "expired").expect("a writable folder");
                    }
                    _ => istiod.write_token(&token),
                }
                command.env("PROV_CERT", &certs).env("OUTPUT_CERTS", &certs);
                command.env("CA_ADDR", istiod.address(15012).to_string());
                command.env("CA_ROOT_CA", istiod.authority_file());
                // The certificate is renewed after half of its lifetime.
                let lifetime = if matches!(identity, Identity::Certificate(_)) { "24h" } else { "60s" };
                command.env("SECRET_TTL", lifetime);
                // The only listener of the bootstrap that subscribes to the certificate.
                command.env("ENVOY_SECURE_METRICS_PORT", metrics.to_string());
            }
        }
        command.env("PROXY_CONFIG", config.to_string());
        let process = Some(Process::start(&mut command, &folder.join("pilot-agent.log")));
        let status = SocketAddr::new(*ip, status);
        Self { folder, process, envoys: Vec::new(), status, _ports: ports }
    }

    /// Kills the agent with SIGKILL; the Envoy of Istio's continues.
    pub(crate) fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            self.envoys.extend(process::children(process.pid()));
        }
    }

    /// Sends SIGTERM and waits until pilot-agent has exited.
    pub(crate) fn stop(&mut self) {
        let mut process = self.process.take().expect("pilot-agent runs");
        process.signal(Signal::SIGTERM);
        process.wait();
    }

    /// Returns the certificate that istiod has issued; empty before that.
    pub(crate) fn certificate(&self) -> String {
        std::fs::read_to_string(self.folder.join("certs/cert-chain.pem")).unwrap_or_default()
    }

    /// Returns the log, with that of its Envoy.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("pilot-agent.log")).unwrap_or_default()
    }
}

impl Drop for PilotAgent {
    fn drop(&mut self) {
        self.kill();
        for envoy in &self.envoys {
            // Fails if it has already exited.
            let _ = kill(*envoy, Signal::SIGKILL);
        }
    }
}
