//! A local Kubernetes node: etcd, API server, controller manager, scheduler, containerd and
//! kubelet, all of them real, in separate namespaces. It does not affect other processes of this
//! machine, and all of it ends with the test; the logs remain in `target/node`. It requires root.

mod containerd;
mod followed_log;
mod kubelet;
mod linux_namespaces;
mod namespace;
mod request;
mod services;
mod watch;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::channel;
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::geteuid;
use serde_json::Value;
use tokio::time::Instant;

use crate::{Cluster, Options, Process, manifests};
use kit::docker::archive::{self, Contents};
use kit::envoy::workspace;
use kit::terminal::say;
use kit::wait;
use linux_namespaces::LinuxNamespaces;
use services::Services;

pub use followed_log::FollowedLog;
pub use namespace::{INJECTED, Namespace};
pub use request::{address, http_get};
pub use services::{DNS, FORWARDED_ADDRESS, FORWARDED_NAME};
pub use watch::{PodEvent, Watch};

pub const NAME: &str = "node1";
/// The node's address, at which the API server connects to kubelet.
pub const IP: &str = "192.0.2.1";
/// The namespace of the webhook.
pub const SYSTEM: &str = "app-health-system";

const STEP: Duration = Duration::from_millis(100);

pub struct Node {
    pub cluster: Cluster,
    /// The folder of the node; its logs are in `log` and `cluster`.
    pub folder: PathBuf,
    /// The name of the node's control groups.
    cgroup: String,
    /// Tests can stop and restart kubelet.
    kubelet: Mutex<Option<Process>>,
    containerd: Process,
    /// What makes Services and their names known, on a node for a mesh.
    services: Option<Services>,
    // Dropped last, because all processes of the node end with the namespaces.
    namespaces: LinuxNamespaces,
}

impl Node {
    /// Returns the node that the tests of this process share, with the webhook installed. The
    /// calling thread enters its network namespace.
    ///
    /// # Panics
    /// If the node cannot be started.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Option<Node>> = OnceLock::new();
        let node = SHARED.get_or_init(|| {
            on_lasting_thread(|| {
                let node = Self::start("shared");
                node.install_webhook();
                node
            })
        });
        let node =
            node.as_ref().expect("the shared node runs; if not, the test that started it reports the error");
        node.enter();
        node
    }

    /// Starts a node for one test, without the webhook. The calling thread enters its network
    /// namespace.
    ///
    /// # Panics
    /// If the node cannot be started.
    pub fn start(name: &str) -> Self {
        Self::start_with(name, Contents::Shipped)
    }

    /// Starts a node with the images of an Istio mesh, with kube-proxy, DNS, and a containerd that
    /// mounts images as volumes. The calling thread enters its network namespace.
    ///
    /// # Panics
    /// If the node cannot be started.
    pub fn start_for_mesh(name: &str) -> Self {
        Self::start_with(name, Contents::Mesh)
    }

    fn start_with(name: &str, contents: Contents) -> Self {
        assert!(
            geteuid().is_root(),
            "a Kubernetes node requires root for namespaces, mounts and control groups"
        );
        let all = workspace().join("target/node");
        forget_others(&all);
        let process = std::process::id();
        let folder = all.join(format!("{process}-{name}"));
        std::fs::create_dir_all(folder.join("log")).expect("target is writable");
        let images = archive::make(contents)
            .unwrap_or_else(|error| panic!("cannot build the images of a Kubernetes node: {error}"));
        let begin = Instant::now();
        let cgroup = format!("app-health-{process}-{name}");
        let namespaces = LinuxNamespaces::start(&folder, kit::container_tools::folder().as_deref(), &cgroup);
        namespaces.enter();
        let containerd = containerd::start(&namespaces, &folder, contents);
        let cluster = thread::scope(|scope| {
            let import = scope.spawn(|| containerd::import(&namespaces, &images));
            let cluster = Cluster::start(&folder.join("cluster"), options());
            import.join().expect("the images are imported");
            cluster
        });
        let services = match contents {
            Contents::Shipped => None,
            Contents::Mesh => Some(services::start(&namespaces, &folder, &cluster.kubeconfig("admin"))),
        };
        let kubelet = Mutex::new(None);
        let node = Self { cluster, folder, cgroup, kubelet, containerd, services, namespaces };
        node.start_kubelet();
        node.until("the node is ready", || {
            let node = node.cluster.kubectl(&["get", "node", NAME, "-o", "json"], "");
            let node: Option<Value> = serde_json::from_slice(&node.stdout).ok();
            node.is_some_and(|node| condition(&node, "Ready"))
        });
        say(&format!("the node {name} is ready after {:.1} s\n", begin.elapsed().as_secs_f64()));
        node
    }

    /// Moves this thread, and every process that it starts, into the network namespace of the node.
    pub fn enter(&self) {
        self.namespaces.enter();
    }

    /// Returns a command that runs a program on the node.
    pub fn command(&self, program: &str) -> Command {
        self.namespaces.command(program)
    }

    /// Returns the control group of the node, below which its containers are.
    pub fn cgroup(&self) -> &str {
        &self.cgroup
    }

    /// Sends a signal to the DNS server of a node for a mesh.
    ///
    /// # Panics
    /// If there is none.
    pub fn signal_dns(&self, signal: Signal) {
        self.services.as_ref().expect("a node for a mesh").signal_dns(signal);
    }

    /// Tags an image of the node with another name, as if it had been pulled from a registry.
    ///
    /// # Panics
    /// If the node has no such image.
    pub fn tag_image(&self, name: &str, other: &str) {
        let from = if name.contains('/') {
            format!("docker.io/{name}")
        } else {
            format!("docker.io/library/{name}")
        };
        let arguments = ["--namespace", "k8s.io", "images", "tag", &from, other];
        let output = self.command("ctr").args(arguments).output().expect("nsenter starts");
        assert!(output.status.success(), "{other}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Starts kubelet, which ends with the node.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start_kubelet(&self) {
        let (namespaces, kubeconfig) = (&self.namespaces, self.cluster.kubeconfig("admin"));
        let started = kubelet::start(namespaces, &self.folder, &kubeconfig, &self.cgroup);
        *self.kubelet.lock().expect("the mutex is not poisoned") = Some(started);
    }

    /// Kills kubelet with SIGKILL.
    ///
    /// # Panics
    /// If it is not running.
    pub fn stop_kubelet(&self) {
        let started = self.kubelet.lock().expect("the mutex is not poisoned").take();
        kubelet::kill(started.expect("kubelet runs"));
    }

    /// Installs the webhook as it is shipped, and waits until it reviews Pods.
    ///
    /// # Panics
    /// If it does not become ready.
    pub fn install_webhook(&self) {
        let base = manifests("base");
        self.cluster.kubectl_ok(&["apply", "-k", base.to_str().expect("UTF-8")], "");
        self.cluster.kubectl_ok(
            &["rollout", "status", "-n", SYSTEM, "deployment/app-health-webhook", "--timeout", "60s"],
            "",
        );
    }

    /// Waits until `is_so` returns true.
    ///
    /// # Panics
    /// After [`wait::timeout`], or if a component of the node has exited; the message contains the end
    /// of kubelet's log.
    pub fn until(&self, what: &str, is_so: impl FnMut() -> bool) {
        self.until_or(what, is_so, || self.tail("kubelet.log"));
    }

    /// Like [`Node::until`], with another text for the message of the panic.
    ///
    /// # Panics
    /// After [`wait::timeout`], or if a component of the node has exited.
    pub fn until_or(&self, what: &str, mut is_so: impl FnMut() -> bool, story: impl Fn() -> String) {
        let begin = Instant::now();
        while begin.elapsed() < wait::timeout() {
            self.cluster.check();
            assert!(!self.containerd.has_ended(), "containerd has exited: {}", self.tail("containerd.log"));
            let kubelet_ended = self
                .kubelet
                .lock()
                .expect("the mutex is not poisoned")
                .as_ref()
                .is_some_and(Process::has_ended);
            assert!(!kubelet_ended, "kubelet has exited: {}", self.tail("kubelet.log"));
            if let Some(log) = self.services.as_ref().and_then(Services::ended) {
                panic!("a service has exited: {}", self.tail(log));
            }
            if is_so() {
                return;
            }
            thread::sleep(STEP);
        }
        panic!("timed out waiting for: {what}\n{}", story());
    }

    /// Returns the end of a log of the node itself.
    fn tail(&self, log: &str) -> String {
        let text = std::fs::read(self.folder.join("log").join(log)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().rev().take(20).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

/// Returns the settings that Pods, Deployments and webhooks behind Services need. No kube-proxy
/// runs: the API server calls a webhook at its endpoints, and Pods reach the API server at the
/// address of its Service.
fn options() -> Options {
    let flags = [
        "--enable-aggregator-routing=true".to_owned(),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        format!("--advertise-address={IP}"),
    ];
    Options {
        bind: std::net::Ipv4Addr::UNSPECIFIED.into(),
        port: Some(443),
        api_server_flags: flags.into(),
        service_accounts: true,
        controller_manager: true,
        scheduler: true,
    }
}

/// Starts something on a thread that never ends, because processes of a node are killed when the thread
/// that started them ends. Returns `None` if `start` panics.
pub fn on_lasting_thread<T: Send + 'static>(start: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (send, receive) = channel();
    thread::spawn(move || {
        send.send(start()).expect("the receiver exists");
        loop {
            thread::park();
        }
    });
    receive.recv().ok()
}

/// Removes what is left of nodes whose process has ended; their logs are kept until the next run.
fn forget_others(all: &Path) {
    for entry in std::fs::read_dir(all).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.split_once('-').map(|(process, _)| Path::new("/proc").join(process));
        if process.is_some_and(|process| !process.exists()) {
            // The folder may be removed by its reaper script at the same time.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Returns the status of a container of a Pod, of any kind; null before it is known.
pub fn container<'a>(pod: &'a Value, name: &str) -> &'a Value {
    let lists = ["containerStatuses", "initContainerStatuses"].map(|list| pod["status"][list].as_array());
    let mut all = lists.into_iter().flatten().flatten();
    all.find(|status| status["name"] == name).unwrap_or(&Value::Null)
}

/// Returns whether a condition of a node or a Pod is `True`.
pub fn condition(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|each| each["type"] == kind && each["status"] == "True")
}
