//! A virtual machine: a loopback address with an application and an agent, and without an Envoy.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::process::Child;

use super::application::Application;
use super::certificates::{DISCOVERY_NAME, Files};
use super::discovery::Discovery;
use super::documents::{GROUP, NAMESPACE, PORT};
use crate::agent;
use crate::caller;
use crate::wait;

/// A machine whose application runs; the agent is killed on drop.
pub struct Machine {
    /// The name of the machine, which its application returns.
    pub name: String,
    pub ip: IpAddr,
    pub application: Application,
    folder: PathBuf,
    flags: Vec<String>,
    child: Option<Child>,
}

impl Machine {
    /// Starts a machine at `ip` with its application, and no agent yet; its files are below
    /// `folder`.
    ///
    /// # Panics
    /// If the folder is not writable, or the application's port is in use.
    pub async fn new(folder: &Path, name: &str, ip: IpAddr) -> Self {
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder).expect("a writable folder");
        let application = Application::start(name, SocketAddr::new(ip, PORT)).await;
        Self { name: name.into(), ip, application, folder, flags: Vec::new(), child: None }
    }

    /// Sets the flags of the agent for its next start, in addition to the address of the machine.
    pub fn add_flags(&mut self, flags: &[&str]) {
        self.flags.extend(flags.iter().map(|flag| (*flag).to_owned()));
    }

    /// Makes the agent report to `discovery` in plaintext, as a member of the group.
    pub fn report_plaintext(&mut self, discovery: &Discovery) {
        self.add_flags(&["--discovery", &discovery.plaintext().to_string(), "--discovery-plaintext"]);
        self.add_flags(&["--group", GROUP, "--namespace", NAMESPACE, "--service-account", GROUP]);
    }

    /// Makes the agent report to `discovery` over mutual TLS, as a member of the group.
    pub fn report_tls(&mut self, discovery: &Discovery, files: &Files) {
        self.add_flags(&["--discovery", &discovery.secure().to_string(), "--discovery-san", DISCOVERY_NAME]);
        let path = |path: &Path| path.to_str().expect("a path").to_owned();
        self.add_flags(&["--discovery-ca", &path(&files.authority)]);
        self.add_flags(&[
            "--discovery-cert",
            &path(&files.certificate),
            "--discovery-key",
            &path(&files.key),
        ]);
        self.add_flags(&["--group", GROUP, "--namespace", NAMESPACE, "--service-account", GROUP]);
    }

    /// Starts the agent of this machine.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start_agent(&mut self) -> std::io::Result<()> {
        let mut command =
            agent::command(&["run", "--no-envoy", "--data-path", "off", "--envoy-readiness", "off"]);
        command.arg("--admin").arg(format!("unix:{}", self.folder.join("no-admin.sock").display()));
        command
            .arg("--state-dir")
            .arg(self.folder.join("state"))
            .arg("--instance-ip")
            .arg(self.ip.to_string());
        command.arg("--ready-address").arg(SocketAddr::new(self.ip, 15021).to_string());
        command.env("APP_HEALTH_LOCAL_ADDRESS", self.admin_address().to_string());
        command.args(&self.flags);
        // A restarted agent continues the log.
        let log = std::fs::File::options().append(true).create(true).open(self.folder.join("agent.log"))?;
        command.stdout(Stdio::null()).stderr(log).process_group(0);
        self.child = Some(command.spawn()?);
        Ok(())
    }

    /// Returns the address of the agent's local admin port.
    pub fn admin_address(&self) -> SocketAddr {
        SocketAddr::new(self.ip, 15004)
    }

    /// Returns whether the agent is running.
    pub fn has_agent(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Sends SIGKILL to the agent.
    ///
    /// # Panics
    /// If it is not running.
    pub async fn kill_agent(&mut self) {
        self.child.take().expect("the agent runs").kill().await.expect("a child can be ended");
    }

    /// Sends a signal to the agent.
    ///
    /// # Panics
    /// If it is not running.
    pub fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).expect("the agent runs");
    }

    /// Returns the PID of the agent.
    ///
    /// # Panics
    /// If it is not running.
    pub fn pid(&self) -> Pid {
        let pid = self.child.as_ref().and_then(Child::id).and_then(|pid| i32::try_from(pid).ok());
        Pid::from_raw(pid.expect("the agent runs"))
    }

    /// Waits until the agent exits and returns the exit code.
    ///
    /// # Panics
    /// If it is not running or does not exit in time.
    pub async fn agent_end(&mut self) -> Option<i32> {
        let mut child = self.child.take().expect("the agent runs");
        let ended = tokio::time::timeout(wait::timeout(), child.wait()).await;
        ended.unwrap_or_else(|_| panic!("the agent does not exit:\n{}", self.log())).expect("a child").code()
    }

    /// Sends `POST /drain`, like a preStop hook, and returns the status.
    pub async fn drain(&self) -> u16 {
        let request = "POST /drain HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
        caller::send(self.admin_address(), request.as_bytes()).await.status
    }

    /// Returns the response of `/debug/vm-health`; `Null` if the agent does not respond.
    pub async fn view(&self) -> Value {
        let answer = caller::get(self.admin_address(), "/debug/vm-health", &[]).await;
        serde_json::from_slice(&answer.body).unwrap_or_default()
    }

    /// Returns the metrics of the agent.
    pub async fn metrics(&self) -> String {
        caller::get(self.admin_address(), "/metrics", &[]).await.text()
    }

    /// Returns the agent's log so far, of all runs.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("agent.log")).unwrap_or_default()
    }
}
