//! A Kubernetes node of our own on this machine: etcd, API server, controller manager, scheduler, containerd and kubelet, all of them
//! real, in namespaces of their own. It touches nothing that runs here, and all of it ends with the test; the logs stay in
//! `target/node`. It needs root.

mod containerd;
mod kubelet;
mod namespaces;
mod space;
mod watch;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::channel;
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use nix::unistd::geteuid;
use serde_json::Value;
use tokio::time::Instant;

use crate::kubernetes::{Cluster, Options, Process, manifests};
use kit::docker::archive;
use kit::envoy::workspace;
use kit::terminal::say;
use namespaces::Namespaces;

pub use space::Space;
pub use watch::{Sight, Watch};

/// The node's name.
pub const NAME: &str = "node1";
/// Its address, at which the API server calls kubelet.
pub const IP: &str = "192.0.2.1";
/// Where the webhook runs.
pub const SYSTEM: &str = "app-health-system";

/// How long something may take to come to pass.
const PATIENCE: Duration = Duration::from_secs(180);
const STEP: Duration = Duration::from_millis(100);

/// A running node.
pub struct Node {
    /// What kubelet serves.
    pub cluster: Cluster,
    /// Its files: the logs in `log` and `cluster`.
    pub folder: PathBuf,
    /// The name of its control groups.
    cgroup: String,
    /// A test takes it away, and brings it back.
    kubelet: Mutex<Option<Process>>,
    containerd: Process,
    // Last: with them everything ends.
    namespaces: Namespaces,
}

impl Node {
    /// The node that the tests of this process share, with our webhook installed. The calling thread enters its network.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Option<Node>> = OnceLock::new();
        let node = SHARED.get_or_init(|| {
            let (send, receive) = channel();
            // Whatever it starts ends with the thread that started it, so this one never does.
            thread::spawn(move || {
                let node = Self::start("shared");
                node.install_webhook();
                send.send(node).expect("somebody waits");
                loop {
                    thread::park();
                }
            });
            receive.recv().ok()
        });
        let node =
            node.as_ref().expect("the shared node has started; why it has not is said by another test");
        node.enter();
        node
    }

    /// A node of its own, bare. The calling thread enters its network.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(name: &str) -> Self {
        assert!(geteuid().is_root(), "a Kubernetes node needs root: namespaces, mounts, control groups");
        let all = workspace().join("target/node");
        forget_others(&all);
        let process = std::process::id();
        let folder = all.join(format!("{process}-{name}"));
        std::fs::create_dir_all(folder.join("log")).expect("target is writable");
        let images = all.join("images.tar");
        archive::make(&images).unwrap_or_else(|error| panic!("a Kubernetes node needs images: {error}"));
        let begin = Instant::now();
        let cgroup = format!("app-health-{process}-{name}");
        let namespaces = Namespaces::start(&folder, kit::container_tools::folder().as_deref(), &cgroup);
        namespaces.enter();
        let containerd = containerd::start(&namespaces, &folder);
        let cluster = thread::scope(|scope| {
            let import = scope.spawn(|| containerd::import(&namespaces, &images));
            let cluster = Cluster::start(&folder.join("cluster"), options());
            import.join().expect("the images are there");
            cluster
        });
        let node = Self { cluster, folder, cgroup, kubelet: Mutex::new(None), containerd, namespaces };
        node.start_kubelet();
        node.until("the node is ready", || {
            let node = node.cluster.kubectl(&["get", "node", NAME, "-o", "json"], "");
            let node: Option<Value> = serde_json::from_slice(&node.stdout).ok();
            node.is_some_and(|node| condition(&node, "Ready"))
        });
        say(&format!("the node {name} is ready after {:.1} s\n", begin.elapsed().as_secs_f64()));
        node
    }

    /// This thread, and whatever it starts, is in the node's network from now on.
    pub fn enter(&self) {
        self.namespaces.enter();
    }

    /// A program that runs on the node.
    pub fn command(&self, program: &str) -> Command {
        self.namespaces.command(program)
    }

    /// Starts kubelet. It ends with the node at the latest.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start_kubelet(&self) {
        let (namespaces, kubeconfig) = (&self.namespaces, self.cluster.kubeconfig("admin"));
        let started = kubelet::start(namespaces, &self.folder, &kubeconfig, &self.cgroup);
        *self.kubelet.lock().expect("nobody panics with it") = Some(started);
    }

    /// Kills kubelet.
    ///
    /// # Panics
    /// When it does not run.
    pub fn stop_kubelet(&self) {
        let started = self.kubelet.lock().expect("nobody panics with it").take();
        kubelet::kill(started.expect("it runs"));
    }

    /// Installs our webhook as it is shipped, and waits until it takes reviews.
    ///
    /// # Panics
    /// When it does not become ready.
    pub fn install_webhook(&self) {
        let base = manifests("base");
        self.cluster.done(&["apply", "-k", base.to_str().expect("UTF-8")], "");
        self.cluster.done(
            &["rollout", "status", "-n", SYSTEM, "deployment/app-health-webhook", "--timeout", "60s"],
            "",
        );
    }

    /// Waits until it is so.
    ///
    /// # Panics
    /// After three minutes, or when a part of the node has ended; with the end of kubelet's log.
    pub fn until(&self, what: &str, is_so: impl FnMut() -> bool) {
        self.until_or(what, is_so, || self.tail("kubelet.log"));
    }

    /// The same, with a story for whom it does not come to pass.
    ///
    /// # Panics
    /// After three minutes, or when a part of the node has ended.
    pub fn until_or(&self, what: &str, mut is_so: impl FnMut() -> bool, story: impl Fn() -> String) {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            self.cluster.check();
            assert!(!self.containerd.has_ended(), "containerd has ended: {}", self.tail("containerd.log"));
            let kubelet_ended =
                self.kubelet.lock().expect("it runs").as_ref().is_some_and(Process::has_ended);
            assert!(!kubelet_ended, "kubelet has ended: {}", self.tail("kubelet.log"));
            if is_so() {
                return;
            }
            thread::sleep(STEP);
        }
        panic!("it never came to pass that {what}\n{}", story());
    }

    /// The end of a log of the node itself.
    fn tail(&self, log: &str) -> String {
        let text = std::fs::read(self.folder.join("log").join(log)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().rev().take(20).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

/// Everything that Pods, Deployments and webhooks behind Services need, but a proxy for Services: the API server calls a webhook at its
/// endpoints, and Pods find the API server at the address of its Service.
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

/// Removes what is left of nodes whose process is gone: logs are there to be read until the next run.
fn forget_others(all: &Path) {
    for entry in std::fs::read_dir(all).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.split_once('-').map(|(process, _)| Path::new("/proc").join(process));
        if process.is_some_and(|process| !process.exists()) {
            // What a keeper is still removing goes without us.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// What is said of a container of a Pod, whatever its kind; null before it is known.
pub fn container<'a>(pod: &'a Value, name: &str) -> &'a Value {
    let lists = ["containerStatuses", "initContainerStatuses"].map(|list| pod["status"][list].as_array());
    let mut all = lists.into_iter().flatten().flatten();
    all.find(|status| status["name"] == name).unwrap_or(&Value::Null)
}

/// Is a condition of a node or a Pod `True`?
pub fn condition(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|each| each["type"] == kind && each["status"] == "True")
}
