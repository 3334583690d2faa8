//! The control plane as a whole: its processes and files.

use std::fs;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard};
use std::thread::{panicking, sleep};
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::time::Instant;

use super::{Options, Process, components, credentials};
use kit::authority::Authority;
use kit::reserved_port::ReservedPort;
use kit::wait;

const STEP: Duration = Duration::from_millis(200);

/// A control plane. Dropping it stops all components and removes the files, unless a test has
/// failed.
pub struct Cluster {
    /// The folder with credentials, data and logs.
    pub folder: PathBuf,
    /// The authority that signed the API server's certificate.
    pub authority: Authority,
    server: SocketAddr,
    options: Options,
    etcd: String,
    /// Tests can stop and restart the API server.
    api_server: Mutex<Option<Process>>,
    /// The other components, by the name of their log.
    parts: Vec<(&'static str, Process)>,
    /// The ports of the API server and of etcd.
    _ports: Vec<ReservedPort>,
}

impl Cluster {
    /// Starts a control plane with its files in `folder`, which is emptied first, and waits until
    /// it is ready. All processes are started by this thread, share its namespaces, and are killed
    /// when it ends.
    ///
    /// # Panics
    /// If a component is missing, exits, or is not ready within two minutes; the message contains
    /// the end of its log.
    pub fn start(folder: &Path, options: Options) -> Self {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).expect("a writable folder");
        let ip = if options.bind.is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { options.bind };
        let localhost = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let [etcd, etcd_peer] = [(); 2].map(|()| ReservedPort::new(localhost));
        let mut ports = vec![etcd, etcd_peer];
        let port = options.port.unwrap_or_else(|| {
            let reserved = ReservedPort::new(ip);
            let port = reserved.port();
            ports.push(reserved);
            port
        });
        let server = SocketAddr::new(ip, port);
        let authority = Authority::new();
        credentials::write(folder, &authority, server);
        let [etcd, etcd_peer] = [&ports[0], &ports[1]].map(|port| format!("http://{}", port.address));
        let (folder, parts) = (folder.to_path_buf(), Vec::new());
        let api_server = Mutex::new(None);
        let mut cluster = Self { folder, authority, server, options, etcd, api_server, parts, _ports: ports };
        cluster.start_part("etcd.log", components::etcd(&cluster.folder, &cluster.etcd, &etcd_peer));
        cluster.start_api_server();
        if cluster.options.controller_manager {
            cluster.start_part("controller-manager.log", components::controller_manager(&cluster.folder));
            cluster.wait_for_account("default");
        }
        if cluster.options.scheduler {
            cluster.start_part("scheduler.log", components::scheduler(&cluster.folder));
        }
        cluster
    }

    fn start_part(&mut self, log: &'static str, mut command: Command) {
        self.parts.push((log, Process::start(&mut command, &self.folder.join(log))));
    }

    /// Starts the API server on the same port as before and waits until it is ready. It is killed
    /// when this thread ends.
    ///
    /// # Panics
    /// If it exits or is not ready within two minutes; the message contains the end of its log.
    pub fn start_api_server(&self) {
        let mut command = components::api_server(&self.folder, &self.options, self.server.port(), &self.etcd);
        *self.api_server() = Some(Process::start(&mut command, &self.folder.join("api-server.log")));
        self.wait_for("the API server", |cluster| {
            cluster.kubectl(&["get", "--raw", "/readyz"], "").status.success()
        });
    }

    pub fn stop_api_server(&self) {
        *self.api_server() = None;
    }

    fn api_server(&self) -> MutexGuard<'_, Option<Process>> {
        self.api_server.lock().expect("the mutex is not poisoned")
    }

    /// Sends a signal to the API server.
    ///
    /// # Panics
    /// If it is not running.
    pub fn signal_api_server(&self, signal: Signal) {
        self.api_server().as_ref().expect("the API server runs").signal(signal);
    }

    /// Returns the address of the API server.
    pub fn server(&self) -> SocketAddr {
        self.server
    }

    /// Returns the path of the kubeconfig of a user: `admin`, `webhook`, `discovery`, …
    pub fn kubeconfig(&self, user: &str) -> PathBuf {
        self.folder.join(format!("{user}.kubeconfig"))
    }

    /// Creates a namespace with these labels (`name=value`) and waits until Pods can be created in
    /// it.
    ///
    /// # Panics
    /// If that is not possible after two minutes.
    pub fn create_namespace(&self, name: &str, labels: &[&str]) {
        self.kubectl_ok(&["create", "namespace", name], "");
        if !labels.is_empty() {
            self.kubectl_ok(&[&["label", "namespace", name], labels].concat(), "");
        }
        if self.options.controller_manager {
            self.wait_for_account(name);
        }
    }

    /// Waits for the default ServiceAccount. If ServiceAccounts are required, the API server
    /// rejects Pods of the namespace without it.
    fn wait_for_account(&self, namespace: &str) {
        let account = ["get", "serviceaccount/default", "configmap/kube-root-ca.crt", "-n", namespace];
        self.wait_for("the controller manager", |cluster| cluster.kubectl(&account, "").status.success());
    }

    fn wait_for(&self, what: &str, done: impl Fn(&Self) -> bool) {
        let begin = Instant::now();
        while begin.elapsed() < wait::timeout() {
            self.check();
            if done(self) {
                return;
            }
            sleep(STEP);
        }
        let logs = ["api-server.log", "controller-manager.log"].map(|log| self.log(log));
        panic!("{what} is not ready:\n{}", logs.join("\n"));
    }

    /// Checks that all components run.
    ///
    /// # Panics
    /// If one has exited; the message contains the end of its log.
    pub fn check(&self) {
        let api_server =
            self.api_server().as_ref().is_some_and(Process::has_ended).then_some("api-server.log");
        let part = || self.parts.iter().find(|(_, process)| process.has_ended()).map(|(log, _)| *log);
        if let Some(log) = api_server.or_else(part) {
            panic!("a component of the cluster has exited: {log}:\n{}", self.log(log));
        }
    }

    /// Returns the end of a log.
    pub fn log(&self, name: &str) -> String {
        let log = fs::read(self.folder.join(name)).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().rev().take(30).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The processes that write into the folder are stopped before it is removed; etcd, which
        // was started first, is stopped last.
        self.stop_api_server();
        while self.parts.pop().is_some() {}
        if panicking() {
            let _ = writeln!(std::io::stderr(), "files of the cluster: {}", self.folder.display());
        } else {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}
