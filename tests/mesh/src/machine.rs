//! A virtual machine of the mesh: a network namespace of its own beside the node, with an application, and our agent
//! started by Istio's own script from the files that `istioctl` writes for a machine.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use istio_tests::istio;
use kit::docker::archive::{APPLICATION, PROXY_WITH_OURS};
use kubernetes_tests::node::{self, Namespace};

use crate::{Mesh, SYSTEM};

/// The address of the machine, which Pods and node reach.
const IP: &str = "192.0.2.10";
/// Its name, also that of its network namespace.
pub const NAME: &str = "machine";
const SCRIPT: &str = include_str!("machine.sh");

/// Connects a new network namespace `$1` with the address `$2` to the node, whose address is `$3`.
const NETWORK: &str = "set -e
ip netns add $1
ip link add $1 type veth peer name eth0 netns $1
ip link set $1 up
ip route add $2/32 dev $1
ip -n $1 link set lo up
ip -n $1 address add $2/32 dev eth0
ip -n $1 link set eth0 up
ip -n $1 route add $3/32 dev eth0
ip -n $1 route add default via $3";

/// A running machine; dropping it ends its programs.
pub struct Machine<'a> {
    mesh: &'a Mesh,
    folder: PathBuf,
}

impl<'a> Machine<'a> {
    /// Starts a machine of a WorkloadGroup, whose application has these arguments.
    ///
    /// # Panics
    /// If that is not possible; the message contains the reason.
    pub fn start(mesh: &'a Mesh, namespace: &Namespace<'_>, group: &str, arguments: &[&str]) -> Self {
        let machine = Self { mesh, folder: mesh.node.folder.join(NAME) };
        machine.write_files(namespace, group);
        machine.run("sh", &["-c", NETWORK, "sh", NAME, IP, node::IP]);
        machine.start_container("application", APPLICATION, &[&["/bin/application"], arguments].concat());
        machine.start_container("agent", PROXY_WITH_OURS, &["sh", "/machine/machine.sh"]);
        machine
    }

    fn write_files(&self, namespace: &Namespace<'_>, group: &str) {
        let istiod = self.mesh.node.cluster.get(&["-n", SYSTEM, "service", "istiod"]);
        let istiod = istiod["spec"]["clusterIP"].as_str().expect("an address");
        let folder = self.folder.to_str().expect("UTF-8");
        let place = ["--namespace", &namespace.name, "--name", group, "--output", folder];
        let addresses = ["--ingressIP", istiod, "--internalIP", IP, "--clusterID", "Kubernetes"];
        let configure = ["experimental", "workload", "entry", "configure", "--autoregister"];
        self.mesh.istioctl(&[&configure[..], &place, &addresses].concat());
        let write = |name: &str, text: &str| {
            fs::write(self.folder.join(name), text).expect("a writable folder");
        };
        write("machine.sh", SCRIPT);
        write(
            "sidecar.env",
            &format!("POD_NAME={NAME}\nAPP_HEALTH_STOCK_AGENT=/usr/local/bin/pilot-agent.istio\n"),
        );
        let domains = "svc.cluster.local cluster.local";
        let search = format!("search {}.{domains} {domains}", namespace.name);
        write("resolv.conf", &format!("nameserver {}\n{search}\n", node::DNS));
        fs::copy(istio("istio-start.sh"), self.folder.join("istio-start.sh")).expect("the script of Istio");
    }

    /// Starts a container in the network namespace of the machine.
    fn start_container(&self, name: &str, image: &str, command: &[&str]) {
        let folder = self.folder.display();
        let mounts = [
            format!("type=bind,src={folder},dst=/machine,options=rbind:ro"),
            format!("type=bind,src={folder}/resolv.conf,dst=/etc/resolv.conf,options=rbind:ro"),
        ];
        let settings = [
            format!("--cgroup={}/{NAME}-{name}", self.mesh.node.cgroup()),
            format!("--with-ns=network:/run/netns/{NAME}"),
            format!("--log-uri=file://{}", self.log_file(name).display()),
        ];
        let mut words = vec!["run", "--detach", "--cap-add", "CAP_NET_ADMIN"];
        words.extend(settings.iter().map(String::as_str));
        words.extend(mounts.iter().flat_map(|mount| ["--mount", mount]));
        let (image, id) = (format!("docker.io/{image}"), format!("{NAME}-{name}"));
        words.extend([image.as_str(), &id]);
        self.ctr(&[&words, command].concat());
    }

    fn log_file(&self, name: &str) -> PathBuf {
        self.mesh.node.folder.join("log").join(format!("{NAME}-{name}.log"))
    }

    /// Returns the log of the agent.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file("agent")).unwrap_or_default()
    }

    /// Sends a request to the control port of the application, from inside.
    ///
    /// # Panics
    /// If the application does not respond.
    pub fn control(&self, path: &str) -> String {
        let url = format!("http://127.0.0.1:9900{path}");
        self.exec("application", &["wget", "-q", "-O", "-", &url])
    }

    /// Removes the token, which is valid for an hour, so that the machine identifies itself by its certificate.
    ///
    /// # Panics
    /// If there is none.
    pub fn remove_token(&self) {
        self.exec("agent", &["rm", "/var/run/secrets/tokens/istio-token"]);
    }

    /// Lets the agent end for good when it ends the next time, as `systemctl stop` does.
    ///
    /// # Panics
    /// If the machine has ended.
    pub fn stop_restarts(&self) {
        self.exec("agent", &["touch", "/run/stopped"]);
    }

    fn exec(&self, name: &str, command: &[&str]) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let (id, number) = (format!("{NAME}-{name}"), NUMBER.fetch_add(1, Ordering::Relaxed).to_string());
        self.ctr(&[&["tasks", "exec", "--exec-id", &number, &id], command].concat())
    }

    fn ctr(&self, words: &[&str]) -> String {
        self.run("ctr", &[&["--namespace", "k8s.io"], words].concat())
    }

    fn run(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.mesh.node.command(program).args(arguments).output().expect("nsenter starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let [out, err] = [&output.stdout, &output.stderr].map(|bytes| text(bytes));
        assert!(output.status.success(), "{program} {arguments:?}: {err}{out}\n{}", self.log());
        out
    }
}

impl Drop for Machine<'_> {
    fn drop(&mut self) {
        for name in ["agent", "application"] {
            let id = format!("{NAME}-{name}");
            for words in [["tasks", "rm", "--force", &id].as_slice(), &["containers", "rm", &id]] {
                let arguments = [&["--namespace", "k8s.io"], words].concat();
                let _ = self.mesh.node.command("ctr").args(arguments).output();
            }
        }
        let _ = self.mesh.node.command("ip").args(["netns", "delete", NAME]).output();
    }
}
