//! Why the sandbox of a Pod cannot be created.

use super::{Wording, hint, wording};

const ADDRESSES: &str =
    "the network plugin has no free address on the node: add addresses or nodes, or remove Pods";
const PLUGIN: &str = "look at the network plugin of the node: do its Pods run?";

pub(crate) const TABLE: &[Wording] = &[
    wording(
        "*: no IP addresses available in range set*",
        "containernetworking/plugins, host-local",
        ADDRESSES,
    ),
    wording("*failed to assign an IP address to container", "amazon-vpc-cni-k8s", ADDRESSES),
    wording("*no IPs currently available on the node*", "Cilium, IPAM", ADDRESSES),
    wording(
        "*: cannot find a network-attachment-definition (*) in namespace (*)*",
        "Multus, k8sclient",
        "create the NetworkAttachmentDefinition in that namespace, or correct the annotation k8s.v1.cni.cncf.io/networks of the Pod",
    ),
    wording(
        "*failed to find plugin \"*\" in path [*",
        "containernetworking/cni, pkg/invoke",
        "the program of that network plugin is not on the node: install it in the directory of the message, or look at the DaemonSet that does",
    ),
    wording(
        "*: cannot open hostport *: address already in use*",
        "containernetworking/plugins, portmap",
        "another process of the node listens on the hostPort: choose another one, or another node",
    ),
    wording(
        "*failed to get sandbox runtime: no runtime for \"*\" is configured",
        "containerd, internal/cri",
        "the runtime of the node does not have the handler of the RuntimeClass: install it, or use another node or class",
    ),
    wording(
        "*failed to find runtime handler * from runtime list *",
        "CRI-O",
        "the runtime of the node does not have the handler of the RuntimeClass: install it, or use another node or class",
    ),
    wording(
        "*failed to get sandbox image \"*\": *",
        "containerd, internal/cri",
        "the node cannot pull the image of the sandbox (pause): does it reach the registry? Or load the image onto the node",
    ),
    wording(
        "unable to ensure pod container exists: *",
        "pkg/kubelet/kubelet.go",
        "kubelet cannot create the control group of the Pod: look at the log of kubelet, and at systemd and the kernel of the node",
    ),
    hint("*networkPlugin cni failed to set up pod *", "cri-dockerd", PLUGIN),
    hint("*failed to setup network for sandbox *", "containerd, internal/cri", PLUGIN),
    hint("*error adding pod * to CNI network *", "CRI-O", PLUGIN),
    wording(
        "*rpc error: code = Unavailable desc = connection error: *dial unix *",
        "kubelet's client of the runtime",
        "the container runtime of the node does not run: look at its log, and start it",
    ),
    wording("network is not ready: *", "pkg/kubelet/kubelet.go", PLUGIN),
    wording("*NetworkPluginNotReady*", "pkg/kubelet/kubelet.go", PLUGIN),
    wording(
        "*: mkdir /sys/fs/cgroup/*: no space left on device*",
        "Linux, cgroup",
        "the kernel of the node has no room for another control group: compare /proc/cgroups, and restart the node",
    ),
    wording(
        "*: layer not known",
        "CRI-O, containers/storage",
        "the image store of the runtime on the node is damaged: remove the images there (crictl rmi), or repair the storage of the runtime",
    ),
    wording(
        "*failed to create pod sandbox: *: no space left on device*",
        "Linux, ENOSPC",
        "the disk of the node is full: free space, or use a larger one",
    ),
    wording(
        "*Failed to create pod sandbox: *: no space left on device*",
        "Linux, ENOSPC",
        "the disk of the node is full: free space, or use a larger one",
    ),
    hint(
        "*OCI runtime create failed: *",
        "containerd and CRI-O, runc",
        "the runtime of the node cannot start the first process of the Pod: look at its log, and at the kernel log of the node",
    ),
    wording(
        "*: context deadline exceeded",
        "kubelet's client of the runtime",
        "the runtime of the node does not answer in time: look at the load and the disk of the node",
    ),
];
