//! The kubelet of a node.

use std::path::Path;

use nix::sys::signal::{Signal, kill as signal};
use nix::unistd::Pid;
use serde_json::json;

use super::containerd::SOCKET;
use super::namespaces::{Namespaces, descendant};
use super::{IP, NAME};
use crate::kubernetes::{Process, tool};

/// Starts it.
pub(super) fn start(namespaces: &Namespaces, folder: &Path, kubeconfig: &Path, cgroup: &str) -> Process {
    let config = folder.join("kubelet.json");
    std::fs::write(&config, configuration(cgroup).to_string()).expect("a writable folder");
    let mut command = namespaces.command(tool("kubelet").to_str().expect("UTF-8"));
    command.arg("--config").arg(&config).arg("--kubeconfig").arg(kubeconfig);
    command.args(["--root-dir", "/var/lib/kubelet", "--hostname-override", NAME, "--node-ip", IP]);
    Process::start(&mut command, &folder.join("log/kubelet.log"))
}

/// Kills it; what it runs lives on.
pub(super) fn kill(mut started: Process) {
    // What was started is the program that went into the namespaces, and waits for it.
    let entered = started.pid().as_raw().unsigned_abs();
    let kubelet = descendant(entered, 1).expect("it runs");
    signal(Pid::from_raw(kubelet.cast_signed()), Signal::SIGKILL).expect("it runs");
    started.wait();
}

/// What is not its default is so because it shares a machine: control groups below one of ours, no taking of Pods for want of room.
fn configuration(cgroup: &str) -> serde_json::Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": format!("unix://{SOCKET}"),
        "cgroupDriver": "cgroupfs", "cgroupRoot": format!("/{cgroup}"), "failCgroupV1": false, "enforceNodeAllocatable": [],
        "failSwapOn": false, "resolvConf": "", "clusterDNS": ["10.96.0.10"], "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        "authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}},
        "authorization": {"mode": "AlwaysAllow"},
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
    })
}
