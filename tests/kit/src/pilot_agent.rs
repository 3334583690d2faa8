//! Istio's own agent: as a status server, which probes the application itself when kubelet asks it, and as
//! the server of Envoy's xDS.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::process::Child;

use crate::authority::Authority;
use crate::envoy::{folder, workspace};
use crate::process::Process;
use crate::reserved_port::ReservedPort;
use crate::{caller, launcher, wait};

/// Where pilot-agent finds the certificates of its workload, below its working directory.
const CREDENTIALS: &str = "var/run/secrets/workload-spiffe-credentials";

/// The socket on which Envoy gets xDS, below its working directory.
const XDS_SOCKET: &str = "etc/istio/proxy/XDS";

/// A pilot-agent that is killed on drop.
pub struct PilotAgent {
    /// The status port at the address of the Pod.
    pub address: SocketAddr,
    /// The socket on which Envoy gets xDS.
    pub xds_socket: PathBuf,
    child: Child,
}

impl PilotAgent {
    /// Starts pilot-agent without Envoy for a Pod with this prober table. `discovery` is its control plane
    /// in plaintext.
    ///
    /// # Panics
    /// If it exits or is not ready in time.
    pub async fn start(pod_ip: IpAddr, probers: &Value, discovery: Option<SocketAddr>) -> Self {
        let folder = folder("pilot-agent");
        write_credentials(&folder.join(CREDENTIALS));
        // It listens on all addresses, so it cannot have the port of the probe listeners, nor one that is in use
        // at another address: then it logs an error and runs without the port.
        let port = ReservedPort::new(Ipv4Addr::UNSPECIFIED.into());
        let address = SocketAddr::new(pod_ip, port.port());
        let mut config = json!({"statusPort": address.port()});
        if let Some(discovery) = discovery {
            config["discoveryAddress"] = discovery.to_string().into();
            config["controlPlaneAuthPolicy"] = "NONE".into();
        }
        let log = std::fs::File::create(folder.join("pilot-agent.log")).expect("a writable folder");
        let mut child = launcher::command(&binary())
            .args(["proxy", "sidecar"])
            .current_dir(&folder)
            .env_clear()
            .env("DISABLE_ENVOY", "true")
            .env("INSTANCE_IP", pod_ip.to_string())
            .env("ISTIO_KUBE_APP_PROBERS", probers.to_string())
            .env("XDS_ROOT_CA", format!("{CREDENTIALS}/root-cert.pem"))
            .env("PROXY_CONFIG", config.to_string())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a descriptor"))
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .expect("pilot-agent starts");
        let log = || std::fs::read_to_string(folder.join("pilot-agent.log")).unwrap_or_default();
        wait::until_or(
            || format!("pilot-agent is ready:\n{}", log()),
            async || {
                if let Ok(Some(status)) = child.try_wait() {
                    panic!("pilot-agent exited with {status}:\n{}", log());
                }
                caller::get(address, "/healthz/ready", &[]).await.status == 200
            },
        )
        .await;
        Self { address, xds_socket: folder.join(XDS_SOCKET), child }
    }

    /// Returns the running process.
    ///
    /// # Panics
    /// If it has exited.
    pub fn process(&self) -> Process {
        Process::new(self.child.id().expect("pilot-agent runs"))
    }
}

fn binary() -> PathBuf {
    let path = workspace().join("target/istio/pilot-agent");
    assert!(
        path.is_file(),
        "{} is missing: run ./justw bench probe or ./justw bench xds-proxy",
        path.display()
    );
    path
}

/// Writes the certificates of a workload, so that pilot-agent does not try to reach a certificate
/// authority, which would cost CPU time during the measurement.
fn write_credentials(folder: &Path) {
    std::fs::create_dir_all(folder).expect("a writable folder");
    let authority = Authority::new();
    let workload = authority.sign("spiffe://cluster.local/ns/default/sa/default");
    for (file, text) in [
        ("root-cert.pem", authority.pem()),
        ("cert-chain.pem", workload.certificate),
        ("key.pem", workload.key),
    ] {
        std::fs::write(folder.join(file), text).expect("a writable folder");
    }
}
