//! A Pod with the sidecar of `envoy-config/kubernetes/strict-mtls`, without Kubernetes: a network
//! namespace in which the commands of the injected containers run.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kit::agent;
use kit::authority::Authority;
use kit::container_tools;
use kit::envoy::{self, Version, workspace};
use nix::sched::{CloneFlags, setns, unshare};
use serde_json::Value;
use tokio::process::Child;

/// The IPv4 address of the Pod.
pub(crate) const POD: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 78, 0, 2));
pub(crate) const POD6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd78, 0, 0, 0, 0, 0, 0, 2));
/// The address of a machine that the caller can reach only if the Pod forwards connections.
pub(crate) const BEYOND: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 79, 0, 2));

/// The directories where the template mounts Envoy's configuration and the certificate.
const CONFIG: &str = "/etc/strict-mtls/";
const CERTIFICATE: &str = "/etc/strict-mtls-certificate";

/// Runs a command such as `link set lo up` of the program `ip`.
fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output().expect("`ip` starts");
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Network namespaces of a Pod, of a caller, and of a machine behind the Pod.
pub(crate) struct Network {
    pod: File,
    beyond: File,
    caller: File,
}

impl Network {
    /// Creates the namespaces and moves this thread into the caller's, which needs root.
    pub(crate) async fn new() -> Self {
        let fresh = || {
            unshare(CloneFlags::CLONE_NEWNET).expect("root can create a network namespace");
            ip("link set lo up");
            File::open("/proc/thread-self/ns/net").expect("this thread has a network namespace")
        };
        let network = Self { pod: fresh(), beyond: fresh(), caller: fresh() };
        let path = |namespace: &File| format!("/proc/{}/fd/{}", std::process::id(), namespace.as_raw_fd());
        let link = |name: &str, other: &str, namespace: &File| {
            ip(&format!("link add {name} type veth peer name {other} netns {}", path(namespace)));
        };
        let address = |link: &str, addresses: &[&str]| {
            for address in addresses {
                ip(&format!("address add {address} dev {link}"));
            }
            ip(&format!("link set {link} up"));
        };
        link("pod0", "eth0", &network.pod);
        address("pod0", &["10.78.0.1/24", "fd78::1/64 nodad"]);
        ip("route add 10.79.0.0/24 via 10.78.0.2");
        let in_pod = async {
            address("eth0", &["10.78.0.2/24", "fd78::2/64 nodad"]);
            link("eth1", "eth0", &network.beyond);
            address("eth1", &["10.79.0.1/24"]);
        };
        network.in_pod(in_pod).await;
        let beyond = async {
            address("eth0", &["10.79.0.2/24"]);
            ip("route add 10.78.0.0/24 via 10.79.0.1");
        };
        network.beyond(beyond).await;
        network
    }

    /// Runs `what` in the Pod's namespace. Sockets and processes that it creates stay in that
    /// namespace.
    pub(crate) async fn in_pod<T>(&self, what: impl Future<Output = T>) -> T {
        self.inside(&self.pod, what).await
    }

    /// Runs `what` in the namespace of the machine behind the Pod.
    pub(crate) async fn beyond<T>(&self, what: impl Future<Output = T>) -> T {
        self.inside(&self.beyond, what).await
    }

    async fn inside<T>(&self, namespace: &File, what: impl Future<Output = T>) -> T {
        setns(namespace, CloneFlags::CLONE_NEWNET).expect("the namespace exists");
        let result = what.await;
        setns(&self.caller, CloneFlags::CLONE_NEWNET).expect("the namespace exists");
        result
    }
}

/// A Pod that was injected with the template's sidecar.
pub(crate) struct Injected {
    pod: Value,
    folder: PathBuf,
}

impl Injected {
    /// Runs the injector on this Pod.
    pub(crate) async fn new(name: &str, pod: &str) -> Self {
        let folder = envoy::folder(name);
        let file = folder.join("pod.yaml");
        std::fs::write(&file, pod).expect("a writable folder");
        let template = workspace().join("envoy-config/kubernetes/strict-mtls/sidecar.yaml");
        let text = |path: &Path| path.to_str().expect("a path").to_owned();
        let words = ["inject", "--strict", "--format", "json", "--template"];
        let mut command = agent::command_of("app-health", &words);
        command.args([text(&template), "-f".to_owned(), text(&file)]);
        let outcome = agent::finish(command.spawn().expect("the injector starts")).await;
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
        Self { pod: serde_json::from_str(&outcome.stdout).expect("JSON"), folder }
    }

    /// Runs the command of the capture container with exactly the capabilities that the manifest
    /// grants. It uses the programs of the Debian root directory in `CONTAINER_TOOLS` if that is
    /// set.
    pub(crate) fn capture(&self) {
        let container = &self.pod["spec"]["initContainers"][0];
        let words = container["command"].as_array().expect("a command").iter().filter_map(Value::as_str);
        let words: Vec<&str> = words.collect();
        assert_eq!(container["securityContext"]["capabilities"]["add"], serde_json::json!(["NET_ADMIN"]));
        let mut command = container_tools::command("setpriv");
        command.args(["--bounding-set=-all,+net_admin", "--inh-caps=-all"]).stdout(Stdio::null());
        assert!(
            command.args(words).status().expect("setpriv starts").success(),
            "the capture command failed"
        );
    }

    /// Writes the mounted files: Envoy's configuration, and a Secret in the layout that kubelet
    /// uses.
    pub(crate) fn mount(&self, authority: &Authority, name: &str) {
        let (config, secret) = (self.config(), self.secret());
        for folder in [&config, &secret] {
            std::fs::create_dir_all(folder).expect("a writable folder");
        }
        for file in ["envoy.yaml", "certificate.yaml", "authority.yaml"] {
            let shipped = workspace().join("envoy-config/kubernetes/strict-mtls/namespace").join(file);
            let text = std::fs::read_to_string(shipped).expect("a shipped file");
            std::fs::write(config.join(file), self.placed(&text)).expect("a writable folder");
        }
        for file in ["tls.crt", "tls.key", "ca.crt"] {
            std::os::unix::fs::symlink(Path::new("..data").join(file), secret.join(file)).expect("a link");
        }
        self.renew(authority, name);
    }

    /// Replaces the certificate in the mounted Secret as kubelet does: it writes a new
    /// directory and moves the symbolic link to it.
    pub(crate) fn renew(&self, authority: &Authority, name: &str) {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);
        let version = format!("..{}", NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        let (secret, issued) = (self.secret(), authority.sign(name));
        std::fs::create_dir(secret.join(&version)).expect("a new folder");
        for (file, pem) in
            [("tls.crt", issued.certificate), ("tls.key", issued.key), ("ca.crt", authority.pem())]
        {
            std::fs::write(secret.join(&version).join(file), pem).expect("a writable folder");
        }
        std::os::unix::fs::symlink(&version, secret.join("..data_tmp")).expect("a link");
        std::fs::rename(secret.join("..data_tmp"), secret.join("..data")).expect("a link");
    }

    /// Starts the sidecar in the current network namespace of this thread.
    pub(crate) fn start(&self) -> Child {
        let sidecar = &self.pod["spec"]["initContainers"][1];
        let mut command = agent::command(&["run"]);
        for variable in sidecar["env"].as_array().expect("variables") {
            if let (Some(name), Some(value)) = (variable["name"].as_str(), variable["value"].as_str()) {
                command.env(name, self.placed(value));
            }
        }
        command.env("INSTANCE_IP", POD.to_string()).env("APP_HEALTH_STATE_DIR", self.state_dir());
        command.arg("--envoy").arg(Version::Newest.binary());
        let log = File::create(self.folder.join("agent.log")).expect("a writable folder");
        command.stdout(Stdio::null()).stderr(log).spawn().expect("the agent starts")
    }

    /// Returns the address and the path that kubelet uses for this probe of a container.
    pub(crate) fn probe(&self, container: &str, field: &str) -> (SocketAddr, String) {
        let containers = self.pod["spec"]["containers"].as_array().expect("containers");
        let found = containers.iter().find(|found| found["name"] == container).expect("a container");
        let probe = &found[field]["httpGet"];
        let port = probe["port"].as_u64().and_then(|port| u16::try_from(port).ok()).expect("a port");
        (SocketAddr::new(POD, port), probe["path"].as_str().expect("a path").to_owned())
    }

    /// Returns the agent's log, which contains Envoy's log.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("agent.log")).unwrap_or_default()
    }

    /// Returns the path of Envoy's configuration.
    pub(crate) fn configuration(&self) -> PathBuf {
        self.config().join("envoy.yaml")
    }

    pub(crate) fn state_dir(&self) -> String {
        self.folder.join("state").to_str().expect("a path").to_owned()
    }

    fn config(&self) -> PathBuf {
        self.folder.join("config")
    }

    fn secret(&self) -> PathBuf {
        self.folder.join("secret")
    }

    /// Replaces the Pod's mount paths in a text by the test's directories.
    fn placed(&self, text: &str) -> String {
        let folder = |path: PathBuf| path.to_str().expect("a path").to_owned();
        text.replace(CERTIFICATE, &folder(self.secret())).replace(CONFIG, &(folder(self.config()) + "/"))
    }
}
