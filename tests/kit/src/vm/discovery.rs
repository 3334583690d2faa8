//! Runs `app-health discovery` as its users do, on a separate address.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::process::Child;

use super::certificates::{Files, replace};
use crate::agent;
use crate::caller;
use crate::net;
use crate::wait::{self, try_poll};

/// The server, running or stopped; killed on drop.
pub struct Discovery {
    /// The address on which it listens: 15010 in plaintext, 15012 with TLS, 15014 for monitoring.
    pub ip: IpAddr,
    /// The folder with configuration, store and log.
    pub folder: PathBuf,
    flags: Vec<String>,
    tls: Option<Files>,
    child: Option<Child>,
}

impl Discovery {
    /// Returns a server that is not running yet, with its files below `folder` and an initial
    /// configuration.
    ///
    /// # Panics
    /// If the folder is not writable.
    pub fn new(folder: &Path, documents: &[Value]) -> Self {
        Self::at(net::loopback(), folder, documents)
    }

    /// Like [`Discovery::new`], at this address.
    ///
    /// # Panics
    /// If the folder is not writable.
    pub fn at(ip: IpAddr, folder: &Path, documents: &[Value]) -> Self {
        let folder = folder.join("discovery");
        std::fs::create_dir_all(folder.join("config")).expect("a writable folder");
        let discovery = Self { ip, folder, flags: Vec::new(), tls: None, child: None };
        for document in documents {
            discovery.configure(document);
        }
        discovery
    }

    #[must_use]
    pub fn flags(mut self, flags: &[&str]) -> Self {
        self.flags.extend(flags.iter().map(|flag| (*flag).to_owned()));
        self
    }

    /// Adds TLS on port 15012 with these files.
    #[must_use]
    pub fn tls(mut self, files: &Files) -> Self {
        self.tls = Some(files.clone());
        self
    }

    /// Writes a document of the configuration to a file named after its kind and name.
    ///
    /// # Panics
    /// If the folder is not writable.
    pub fn configure(&self, document: &Value) {
        let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str).expect("a name");
        self.configure_file(
            &format!("{}-{}.yaml", text("/kind"), text("/metadata/name")),
            &document.to_string(),
        );
    }

    /// Writes a file of the configuration.
    ///
    /// # Panics
    /// If the folder is not writable.
    pub fn configure_file(&self, name: &str, text: &str) {
        replace(&self.folder.join("config").join(name), text);
    }

    /// Returns the address of the plaintext ADS port.
    pub fn plaintext(&self) -> SocketAddr {
        SocketAddr::new(self.ip, 15010)
    }

    /// Returns the address of the TLS ADS port.
    pub fn secure(&self) -> SocketAddr {
        SocketAddr::new(self.ip, 15012)
    }

    /// Returns the address of the port for metrics, health and debug endpoints.
    pub fn monitoring(&self) -> SocketAddr {
        SocketAddr::new(self.ip, 15014)
    }

    /// Returns the path of the embedded store.
    pub fn store(&self) -> PathBuf {
        self.folder.join("store.redb")
    }

    /// Starts the server and waits until it is ready.
    ///
    /// # Errors
    /// Its log, if it exits or is not ready in time.
    pub async fn start(&mut self) -> Result<(), String> {
        let mut command = agent::command_of("app-health", &["discovery"]);
        command.arg("--plaintext-listen").arg(self.plaintext().to_string());
        command.arg("--monitoring-address").arg(self.monitoring().to_string());
        command.arg("--store-path").arg(self.store()).arg("--config-dir").arg(self.folder.join("config"));
        if let Some(files) = &self.tls {
            command.arg("--listen").arg(self.secure().to_string()).arg("--tls-cert").arg(&files.certificate);
            command.arg("--tls-key").arg(&files.key).arg("--client-ca").arg(&files.authority);
        }
        // As in the shipped unit and Deployment: freed memory is returned to the system.
        command.envs([("MALLOC_ARENA_MAX", "1"), ("MALLOC_TRIM_THRESHOLD_", "131072")]);
        command.args(&self.flags);
        // A restarted server continues the log.
        let log = std::fs::File::options().append(true).create(true).open(self.folder.join("discovery.log"));
        command.stdout(Stdio::null()).stderr(log.map_err(|error| error.to_string())?).process_group(0);
        self.child = Some(command.spawn().map_err(|error| error.to_string())?);
        self.ready().await
    }

    async fn ready(&mut self) -> Result<(), String> {
        let is_ready = try_poll(async || {
            if let Some(Ok(Some(status))) = self.child.as_mut().map(Child::try_wait) {
                return Some(Err(format!("app-health discovery exited with {status}:\n{}", self.log())));
            }
            let answer = caller::get(self.monitoring(), "/healthz/ready", &[]).await;
            (answer.status == 200).then_some(Ok(()))
        });
        let is_ready = is_ready.await;
        is_ready.unwrap_or_else(|| Err(format!("app-health discovery is not ready:\n{}", self.log())))
    }

    /// Sends SIGKILL, which has the effect of a crash.
    ///
    /// # Panics
    /// If the server is not running.
    pub async fn kill(&mut self) {
        self.child.take().expect("the server runs").kill().await.expect("a child can be ended");
    }

    /// Sends SIGTERM, waits until the server has exited and returns the exit code.
    ///
    /// # Panics
    /// If the server is not running or does not exit in time.
    pub async fn stop(&mut self) -> Option<i32> {
        kill(self.pid(), Signal::SIGTERM).expect("the server runs");
        let mut child = self.child.take().expect("the server runs");
        let ended = tokio::time::timeout(wait::timeout(), child.wait()).await;
        ended.unwrap_or_else(|_| panic!("the server does not exit:\n{}", self.log())).expect("a child").code()
    }

    /// Returns the PID of the server.
    ///
    /// # Panics
    /// If the server is not running.
    pub fn pid(&self) -> Pid {
        let pid = self.child.as_ref().and_then(Child::id).and_then(|pid| i32::try_from(pid).ok());
        Pid::from_raw(pid.expect("the server runs"))
    }

    /// Returns the log so far, of all runs.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("discovery.log")).unwrap_or_default()
    }

    /// Returns the metrics in the Prometheus text format.
    pub async fn metrics(&self) -> String {
        caller::get(self.monitoring(), "/metrics", &[]).await.text()
    }

    /// Returns the response of `/debug/workloads`; `Null` if the server does not respond.
    pub async fn view(&self) -> Value {
        let answer = caller::get(self.monitoring(), "/debug/workloads", &[]).await;
        serde_json::from_slice(&answer.body).unwrap_or_default()
    }

    /// Returns the entry of that address in the response of `/debug/workloads`; `Null` if there is
    /// none.
    pub async fn workload(&self, address: IpAddr) -> Value {
        let view = self.view().await;
        let mut workloads = view["workloads"].as_array().into_iter().flatten();
        workloads.find(|found| found["address"] == address.to_string()).cloned().unwrap_or_default()
    }

    /// Runs `app-health workloads` on this server, with these additional flags.
    pub async fn print_workloads(&self, flags: &[&str]) -> agent::Outcome {
        let url = format!("http://{}", self.monitoring());
        let mut command = agent::command_of("app-health", &["workloads", "--url", &url]);
        command.args(flags);
        agent::finish(command.spawn().expect("app-health starts")).await
    }
}
