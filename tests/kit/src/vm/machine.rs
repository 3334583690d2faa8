//! A virtual machine: a loopback address with an application and the agent on it, and no Envoy.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

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

/// Nothing that an agent does takes longer than this.
const PATIENCE: Duration = Duration::from_secs(30);

/// A machine whose application runs; the agent is killed on drop.
pub struct Machine {
    /// What the application calls itself.
    pub name: String,
    /// Its address.
    pub ip: IpAddr,
    /// Its application.
    pub application: Application,
    folder: PathBuf,
    flags: Vec<String>,
    child: Option<Child>,
}

impl Machine {
    /// A machine at `ip` with its application, and no agent yet; files go below `folder`.
    ///
    /// # Panics
    /// When the folder cannot be written, or the application's port is taken.
    pub async fn new(folder: &Path, name: &str, ip: IpAddr) -> Self {
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder).expect("a writable folder");
        let application = Application::start(name, SocketAddr::new(ip, PORT)).await;
        Self { name: name.into(), ip, application, folder, flags: Vec::new(), child: None }
    }

    /// What its agent is told from its next start on, besides where this machine is.
    pub fn tell(&mut self, flags: &[&str]) {
        self.flags.extend(flags.iter().map(|flag| (*flag).to_owned()));
    }

    /// To report to `discovery` in plaintext, as a member of the group.
    pub fn join_plaintext(&mut self, discovery: &Discovery) {
        self.tell(&["--discovery", &discovery.plaintext().to_string(), "--discovery-plaintext"]);
        self.tell(&["--group", GROUP, "--namespace", NAMESPACE, "--service-account", GROUP]);
    }

    /// The same over mutual TLS.
    pub fn join_secure(&mut self, discovery: &Discovery, files: &Files) {
        self.tell(&["--discovery", &discovery.secure().to_string(), "--discovery-san", DISCOVERY_NAME]);
        let path = |path: &Path| path.to_str().expect("a path").to_owned();
        self.tell(&["--discovery-ca", &path(&files.authority)]);
        self.tell(&["--discovery-cert", &path(&files.certificate), "--discovery-key", &path(&files.key)]);
        self.tell(&["--group", GROUP, "--namespace", NAMESPACE, "--service-account", GROUP]);
    }

    /// Starts the agent.
    ///
    /// # Errors
    /// What is in the way.
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
        command.env("APP_HEALTH_LOCAL_ADDRESS", self.local().to_string());
        command.args(&self.flags);
        // A second life continues the log of the first.
        let log = std::fs::File::options().append(true).create(true).open(self.folder.join("agent.log"))?;
        command.stdout(Stdio::null()).stderr(log).process_group(0);
        self.child = Some(command.spawn()?);
        Ok(())
    }

    /// The agent's local port.
    pub fn local(&self) -> SocketAddr {
        SocketAddr::new(self.ip, 15004)
    }

    /// Does its agent run?
    pub fn has_agent(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Ends the agent by a signal that it cannot see.
    ///
    /// # Panics
    /// When it does not run.
    pub async fn kill_agent(&mut self) {
        self.child.take().expect("the agent runs").kill().await.expect("a child can be ended");
    }

    /// Sends a signal to the agent.
    ///
    /// # Panics
    /// When it does not run.
    pub fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).expect("the agent runs");
    }

    /// The number of the agent's process.
    ///
    /// # Panics
    /// When it does not run.
    pub fn pid(&self) -> Pid {
        let pid = self.child.as_ref().and_then(Child::id).and_then(|pid| i32::try_from(pid).ok());
        Pid::from_raw(pid.expect("the agent runs"))
    }

    /// Waits for the agent's end: the exit code.
    ///
    /// # Panics
    /// When it does not run, or does not end.
    pub async fn agent_end(&mut self) -> Option<i32> {
        let mut child = self.child.take().expect("the agent runs");
        let ended = tokio::time::timeout(PATIENCE, child.wait()).await;
        ended.unwrap_or_else(|_| panic!("the agent does not end:\n{}", self.log())).expect("a child").code()
    }

    /// `POST /drain`, as a preStop hook does it: the status.
    pub async fn drain(&self) -> u16 {
        let request = "POST /drain HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
        caller::send(self.local(), request.as_bytes()).await.status
    }

    /// What `/debug/vm-health` answers; `Null` where nobody answers.
    pub async fn view(&self) -> Value {
        let answer = caller::get(self.local(), "/debug/vm-health", &[]).await;
        serde_json::from_slice(&answer.body).unwrap_or_default()
    }

    /// The agent's log so far, of all its lives.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("agent.log")).unwrap_or_default()
    }
}
