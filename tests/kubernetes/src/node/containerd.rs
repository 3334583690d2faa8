//! containerd on a node: its configuration, the Pod network, the images.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;

use super::linux_namespaces::LinuxNamespaces;
use crate::{Process, tool};
use kit::docker::archive::Contents;
use kit::wait;

/// The path of its socket inside the node.
pub(super) const SOCKET: &str = "/run/containerd/containerd.sock";

const CONFIG: &str = r#"version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/app-health-test/pause:1"
  # Lowering the OOM score of a process requires CAP_SYS_RESOURCE.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/etc/cni/net.d"
"#;

/// A bridge in the node's network namespace, whose address is the gateway of the Pods.
const NETWORK: &str = r#"{
  "cniVersion": "0.4.0", "name": "node",
  "plugins": [{
    "type": "bridge", "bridge": "cni0", "isGateway": true,
    "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.88.0.0/16"}]], "routes": [{"dst": "0.0.0.0/0"}]}
  }]
}"#;

/// Starts Debian's containerd, or on a node for a mesh one that mounts images as volumes.
pub(super) fn start(namespaces: &LinuxNamespaces, folder: &Path, contents: Contents) -> Process {
    let config = folder.join("containerd.toml");
    std::fs::write(&config, CONFIG).expect("a writable folder");
    let network = folder.join("network.conflist");
    std::fs::write(&network, NETWORK).expect("a writable folder");
    let mut install = namespaces.command("install");
    install.arg("-D").arg(&network).arg("/etc/cni/net.d/10-node.conflist");
    assert!(
        install.status().expect("nsenter starts").success(),
        "the network configuration cannot be installed"
    );
    let program = match contents {
        Contents::Shipped => PathBuf::from("containerd"),
        Contents::Mesh => tool("containerd"),
    };
    let mut command = namespaces.command(program.to_str().expect("UTF-8"));
    // It finds its shim on the PATH.
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let folders = program.parent().map(Path::to_path_buf).into_iter().chain(std::env::split_paths(&folders));
    command.env("PATH", std::env::join_paths(folders).expect("paths without colons"));
    Process::start(command.arg("--config").arg(&config), &folder.join("log/containerd.log"))
}

/// Imports the images of an archive as soon as containerd responds.
///
/// # Panics
/// If containerd does not respond, or the import fails; the message contains its output.
pub(super) fn import(namespaces: &LinuxNamespaces, archive: &Path) {
    let ctr = |words: &[&str]| {
        let mut command = namespaces.command("ctr");
        command
            .args(["--address", SOCKET, "--namespace", "k8s.io"])
            .args(words)
            .output()
            .expect("nsenter starts")
    };
    let begin = Instant::now();
    loop {
        let version = ctr(&["version"]);
        if version.status.success() {
            break;
        }
        let error = String::from_utf8_lossy(&version.stderr);
        assert!(begin.elapsed() < wait::timeout(), "containerd does not respond: {error}");
        std::thread::sleep(Duration::from_millis(200));
    }
    let output = ctr(&["images", "import", archive.to_str().expect("UTF-8")]);
    assert!(
        output.status.success(),
        "the images cannot be imported: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
