//! Istio's own agent as a status server: it probes the application itself when kubelet asks it.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use kit::authority::Authority;
use kit::envoy::{folder, workspace};
use kit::process::Process;
use kit::reserved_port::ReservedPort;
use kit::{caller, wait};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

/// Where pilot-agent finds the certificates of its workload, below its working directory.
const CREDENTIALS: &str = "var/run/secrets/workload-spiffe-credentials";

/// A pilot-agent that is killed on drop.
pub(crate) struct PilotAgent {
    /// The status port at the address of the Pod.
    pub(crate) address: SocketAddr,
    child: Child,
}

impl PilotAgent {
    /// Starts pilot-agent without Envoy and istiod for a Pod with this prober table.
    pub(crate) async fn start(pod_ip: IpAddr, probers: &Value) -> Self {
        let folder = folder("pilot-agent");
        write_credentials(&folder.join(CREDENTIALS));
        // It listens on all addresses, so it cannot have the port of the probe listeners.
        let port = ReservedPort::new(pod_ip);
        let address = port.address;
        let log = std::fs::File::create(folder.join("pilot-agent.log")).expect("a writable folder");
        let mut child = Command::new(binary())
            .args(["proxy", "sidecar"])
            .current_dir(&folder)
            .env_clear()
            .env("DISABLE_ENVOY", "true")
            .env("INSTANCE_IP", pod_ip.to_string())
            .env("ISTIO_KUBE_APP_PROBERS", probers.to_string())
            .env("XDS_ROOT_CA", format!("{CREDENTIALS}/root-cert.pem"))
            .env("PROXY_CONFIG", json!({"statusPort": address.port()}).to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
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
        Self { address, child }
    }

    pub(crate) fn process(&self) -> Process {
        Process::new(self.child.id().expect("pilot-agent runs"))
    }
}

fn binary() -> PathBuf {
    let path = workspace().join("target/istio/pilot-agent");
    assert!(path.is_file(), "{} is missing: run ./justw bench probe", path.display());
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
