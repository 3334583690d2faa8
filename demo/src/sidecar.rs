//! The demo's sidecar: Envoy with the agent's bootstrap, and the agent, as child processes.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use tokio::process::{Child, Command};

use super::ports;
use kit::agent;
use kit::caller;
use kit::envoy::{Version, workspace};

/// Both child processes; dropping this kills them.
pub struct Sidecar {
    /// The address of the probe listener.
    pub listener: SocketAddr,
    envoy: Child,
    agent: Child,
}

impl Sidecar {
    /// Renders the bootstrap, starts agent and Envoy, and waits until the agent reports Envoy as
    /// ready.
    ///
    /// # Errors
    /// The message of the process that failed, and the path of its log.
    pub async fn start(pod_ip: IpAddr, probers: &Value) -> Result<Self, String> {
        let agent = agent::binary();
        let folder = workspace().join("target/demo");
        std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let bootstrap = folder.join("envoy.json");
        let mut render = Command::new(&agent);
        render.arg("bootstrap").arg("--state-dir").arg(&folder).arg("--output").arg(&bootstrap);
        render.arg("--instance-ip").arg(pod_ip.to_string());
        render.env("ISTIO_KUBE_APP_PROBERS", probers.to_string());
        finish(render).await?;
        let admin = format!("unix:{}", folder.join("admin.sock").display());
        let mut run = Command::new(&agent);
        run.args(["run", "--no-envoy", "--admin", &admin]);
        let agent_child = spawn(run, &folder.join("agent.log"))?;
        let mut run = Command::new(Version::Newest.binary());
        run.arg("--config-path").arg(&bootstrap);
        run.args(["--disable-hot-restart", "--concurrency", "1", "--log-level", "warning"]);
        let envoy = spawn(run, &folder.join("envoy.log"))?;
        let listener = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), ports::PROBES);
        let sidecar = Self { listener, envoy, agent: agent_child };
        let mut wait = Command::new(&agent);
        wait.args(["wait", "--timeoutSeconds", "30"]);
        finish(wait).await.map_err(|error| {
            format!(
                "{error}\nlogs: {}, {}",
                folder.join("envoy.log").display(),
                folder.join("agent.log").display()
            )
        })?;
        Ok(sidecar)
    }

    /// Returns the response of the agent's readiness endpoint.
    pub async fn readiness(&self) -> String {
        let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), ports::READY);
        let answer = caller::get(address, "/healthz/ready", &[]).await;
        format!("{} {}", answer.status, answer.text().trim().replace('\n', "; "))
    }

    pub async fn stop(mut self) {
        // Killing a child that has exited returns an error, which does not matter.
        let _ = self.envoy.kill().await;
        let _ = self.agent.kill().await;
    }
}

fn spawn(mut command: Command, log: &Path) -> Result<Child, String> {
    let file = std::fs::File::create(log).map_err(|error| format!("{}: {error}", log.display()))?;
    let errors = file.try_clone().map_err(|error| format!("{}: {error}", log.display()))?;
    // A separate process group, so that Ctrl-C reaches only the demo, which then stops its
    // children in order.
    command.stdin(Stdio::null()).stdout(file).stderr(errors).kill_on_drop(true).process_group(0);
    command.spawn().map_err(|error| format!("{:?}: {error}", command.as_std().get_program()))
}

async fn finish(mut command: Command) -> Result<(), String> {
    let output = command.output().await.map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}
