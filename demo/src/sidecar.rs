//! The demo's sidecar: the agent, which renders the bootstrap and runs Envoy.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::process::Child;

use crate::ports::Ports;
use crate::{child, http};

/// How long the agent and Envoy may take to become ready.
const START: Duration = Duration::from_secs(60);
/// The time in which the agent stops Envoy.
const STOP: Duration = Duration::from_secs(10);

/// The running agent with its Envoy; both end when this is dropped.
pub(crate) struct Sidecar {
    /// The address to which the demo sends kubelet's probes.
    pub(crate) probe_address: SocketAddr,
    /// The address of `/healthz/ready`.
    pub(crate) ready_address: SocketAddr,
    /// The address of the agent's page.
    page_address: SocketAddr,
    agent: Child,
}

impl Sidecar {
    /// Starts the agent and waits until it reports that Envoy is ready.
    ///
    /// # Errors
    /// The reason, and the file that contains the log.
    pub(crate) async fn start(pod_ip: IpAddr, ports: &Ports, probers: &Value) -> Result<Self, String> {
        let workspace = workspace();
        let folder = workspace.join("target/demo");
        let state = folder.join("state");
        let mut builder = std::fs::DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(&state)
            .map_err(|error| format!("{}: {error}", state.display()))?;
        let log_file = folder.join("agent.log");
        let log = File::create(&log_file).map_err(|error| format!("{}: {error}", log_file.display()))?;
        let errors = log.try_clone().map_err(|error| format!("{}: {error}", log_file.display()))?;
        let mut command = child::command(sibling("app-health-agent")?.as_os_str())?;
        command.arg("run").arg("--state-dir").arg(&state);
        command.arg("--envoy").arg(workspace.join(".tools/bin/envoy"));
        command.arg("--instance-ip").arg(pod_ip.to_string());
        let page_address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), ports.local);
        command.arg("--local-address").arg(page_address.to_string());
        for (flag, port) in [
            ("--probe-address", ports.probes),
            ("--ready-address", ports.ready),
            ("--stats-address", ports.stats),
        ] {
            command.arg(flag).arg(Ports::everywhere(port).to_string());
        }
        // Nothing but the demo sends requests, so a drain has nothing to wait for.
        command.args(["--drain-seconds", "0", "--concurrency", "1", "--", "--log-level", "warning"]);
        command.env("ISTIO_KUBE_APP_PROBERS", probers.to_string());
        // A separate process group: Ctrl-C is sent to the demo, which then stops the agent.
        command.stdin(Stdio::null()).stdout(log).stderr(errors).process_group(0);
        let agent = command.spawn().map_err(|error| format!("app-health-agent: {error}"))?;
        let local = |port| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
        let mut sidecar = Self {
            probe_address: local(ports.probes),
            ready_address: local(ports.ready),
            page_address,
            agent,
        };
        sidecar.until_ready().await.map_err(|reason| failure(&reason, &log_file))?;
        Ok(sidecar)
    }

    async fn until_ready(&mut self) -> Result<(), String> {
        let address = self.ready_address;
        let ready = async {
            while http::probe(address, "/healthz/ready").await.status != 200 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::select! {
            () = ready => Ok(()),
            ended = self.agent.wait() => match ended {
                Ok(status) => Err(format!("the agent ended with {status}")),
                Err(error) => Err(format!("the agent: {error}")),
            },
            () = tokio::time::sleep(START) => Err(format!("not ready within {START:?}")),
        }
    }

    /// Returns the URL of the agent's page.
    pub(crate) fn page(&self) -> String {
        format!("http://{}/", self.page_address)
    }

    /// Returns status and body of `/healthz/ready` as one line.
    pub(crate) async fn readiness(&self) -> String {
        let answer = http::probe(self.ready_address, "/healthz/ready").await;
        format!("{} {}", answer.status, answer.body.trim().replace('\n', "; "))
    }

    /// Stops Envoy and the agent.
    pub(crate) async fn stop(mut self) {
        if let Some(pid) = self.agent.id().and_then(|pid| i32::try_from(pid).ok()) {
            // A process that has ended already needs no signal.
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
        if tokio::time::timeout(STOP, self.agent.wait()).await.is_err() {
            let _ = self.agent.kill().await;
        }
    }
}

/// The reason with the end of the log, which names the setting at fault.
fn failure(reason: &str, log_file: &Path) -> String {
    let log = std::fs::read_to_string(log_file).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    let end = lines[lines.len().saturating_sub(5)..].join("\n");
    format!("{reason}\n{end}\nlog: {}", log_file.display())
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in a workspace").to_path_buf()
}

/// A binary of this workspace in the directory of the running one.
fn sibling(name: &str) -> Result<PathBuf, String> {
    let demo = std::env::current_exe().map_err(|error| format!("the demo's own path: {error}"))?;
    let path = demo.with_file_name(name);
    if path.is_file() { Ok(path) } else { Err(format!("{} is missing: run ./justw demo", path.display())) }
}
