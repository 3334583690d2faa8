//! The kubelet of a node.

use std::path::Path;

use nix::sys::signal::{Signal, kill as signal};
use nix::unistd::Pid;
use serde_json::json;

use super::containerd::SOCKET;
use super::linux_namespaces::{LinuxNamespaces, descendant};
use super::services::DNS;
use super::{IP, NAME};
use crate::{Process, tool};

pub(super) fn start(namespaces: &LinuxNamespaces, folder: &Path, kubeconfig: &Path, cgroup: &str) -> Process {
    let config = folder.join("kubelet.json");
    std::fs::write(&config, configuration(cgroup).to_string()).expect("a writable folder");
    let mut command = namespaces.command(tool("kubelet").to_str().expect("UTF-8"));
    command.arg("--config").arg(&config).arg("--kubeconfig").arg(kubeconfig);
    command.args(["--root-dir", "/var/lib/kubelet", "--hostname-override", NAME, "--node-ip", IP]);
    Process::start(&mut command, &folder.join("log/kubelet.log"))
}

/// Kills kubelet; its containers continue to run.
pub(super) fn kill(mut started: Process) {
    // The started process is nsenter, which waits for kubelet as its child.
    let entered = started.pid().as_raw().unsigned_abs();
    let kubelet = descendant(entered, 1).expect("kubelet runs");
    signal(Pid::from_raw(kubelet.cast_signed()), Signal::SIGKILL).expect("kubelet runs");
    started.wait();
}

/// Settings differ from the defaults only because the node shares a machine: the control groups are
/// below one of the node, and Pods are not evicted because the machine's disk is almost full.
fn configuration(cgroup: &str) -> serde_json::Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": format!("unix://{SOCKET}"),
        "cgroupDriver": "cgroupfs", "cgroupRoot": format!("/{cgroup}"), "failCgroupV1": false, "enforceNodeAllocatable": [],
        "failSwapOn": false, "resolvConf": "", "clusterDNS": [DNS], "clusterDomain": "cluster.local", "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        "authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}},
        "authorization": {"mode": "AlwaysAllow"},
        "evictionHard": {"memory.available": "50Mi"},
        "imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
    })
}
