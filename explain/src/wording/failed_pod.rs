//! Why kubelet or a controller ended a Pod: reason and message of its status.

use super::{Wording, hint, wording};

const EVICTION: &str = "pkg/kubelet/eviction/helpers.go";
const PREDICATE: &str = "pkg/kubelet/lifecycle/predicate.go";
const NODE: &str = "look at the node";
const NO_ROOM: &str = "kubelet has no room for it, though it was assigned to the node: is spec.nodeName set, or another scheduler at work? Delete the Pod";
const STORAGE: &str = "it writes too much to its containers' file systems, logs and emptyDirs: write less, or raise the limit of ephemeral-storage";

/// Patterns of `REASON: MESSAGE`, without kubelet's `Pod was rejected: `.
pub(crate) const TABLE: &[Wording] = &[
    wording(
        "Evicted: Usage of EmptyDir volume \"app-health\" exceeds the limit *",
        EVICTION,
        "the emptyDir of the sidecar is too small: raise its sizeLimit in the sidecar's template, and look at what the sidecar writes there",
    ),
    wording(
        "Evicted: Usage of EmptyDir volume \"*\" exceeds the limit *",
        EVICTION,
        "the emptyDir is too small: raise its sizeLimit, or write less to it",
    ),
    wording("Evicted: Container * exceeded its local ephemeral storage limit *", EVICTION, STORAGE),
    wording(
        "Evicted: Pod ephemeral local storage usage exceeds the total limit of containers *",
        EVICTION,
        STORAGE,
    ),
    wording(
        "Evicted: The node was low on resource: memory.*",
        EVICTION,
        "raise the memory request of the Pod to what it uses, or free memory of the node",
    ),
    wording(
        "Evicted: The node was low on resource: ephemeral-storage.*",
        EVICTION,
        "the disk of the node is full: free space, set a request of ephemeral-storage, or write less",
    ),
    wording(
        "Evicted: The node was low on resource: inodes.*",
        EVICTION,
        "the node has no free inodes: remove files, or write fewer",
    ),
    wording(
        "Evicted: The node was low on resource: pids.*",
        EVICTION,
        "the node has no free process IDs: find out which Pod starts so many processes or threads, and limit it",
    ),
    wording(
        "Evicted: The node had condition: [*MemoryPressure*]*",
        EVICTION,
        "the node is short of memory, so kubelet rejected the Pod: free memory of the node",
    ),
    wording(
        "Evicted: The node had condition: [*DiskPressure*]*",
        EVICTION,
        "the disk of the node is full, so kubelet rejected the Pod: free space",
    ),
    wording(
        "Evicted: The node had condition: [*PIDPressure*]*",
        EVICTION,
        "the node has too few free process IDs, so kubelet rejected the Pod: look at the node",
    ),
    hint("Evicted: *", EVICTION, "look at the message: it names what the node was short of"),
    wording(
        "DeadlineExceeded: Pod was active on the node longer than the specified deadline",
        "pkg/kubelet/active_deadline.go",
        "raise activeDeadlineSeconds, or find out why the work takes longer",
    ),
    wording(
        "Preempting: *",
        "pkg/kubelet/preemption/preemption.go",
        "a critical Pod needed its place: raise the priority of the Pod, or add nodes",
    ),
    wording(
        "NodePorts: *",
        PREDICATE,
        "another Pod or process of the node has the hostPort; choose another one",
    ),
    wording(
        "NodeAffinity: *",
        PREDICATE,
        "the labels of the node no longer match the Pod's nodeSelector or affinity: compare them",
    ),
    wording(
        "TaintToleration: *",
        PREDICATE,
        "the node has a taint that the Pod does not tolerate: add a toleration",
    ),
    wording(
        "UnexpectedAdmissionError: Allocate failed due to [memorymanager] *",
        "pkg/kubelet/cm/memorymanager/policy_static.go",
        "no NUMA node of the node has enough free memory: lower the requests of the Pod, or use another node",
    ),
    wording(
        "UnexpectedAdmissionError: Allocate failed due to *device*, which is unexpected",
        "pkg/kubelet/cm/devicemanager/manager.go",
        "kubelet could not give it a device: look at the device plugin of the node",
    ),
    hint(
        "UnexpectedAdmissionError: *",
        PREDICATE,
        "kubelet could not give it CPUs, memory or a device: compare its requests with what the node has free",
    ),
    wording(
        "TopologyAffinityError: *",
        "pkg/kubelet/cm/topologymanager/scope.go",
        "no NUMA node of the node has all CPUs, memory and devices that the Pod asks for: lower its requests, or change the policy of the topology manager",
    ),
    wording(
        "SMTAlignmentError: *",
        "pkg/kubelet/cm/cpumanager/policy_static.go",
        "kubelet gives only whole cores: request a multiple of the threads of a core",
    ),
    wording("OutOfcpu: *", PREDICATE, NO_ROOM),
    wording("OutOfmemory: *", PREDICATE, NO_ROOM),
    wording("OutOfpods: *", PREDICATE, NO_ROOM),
    wording("OutOfephemeral-storage: *", PREDICATE, NO_ROOM),
    wording("OutOf*", PREDICATE, NO_ROOM),
    wording(
        "PodOSSelectorNodeLabelDoesNotMatch: *",
        PREDICATE,
        "the node has another operating system than the Pod asks for: correct nodeSelector",
    ),
    wording(
        "PodOSNotSupported: *",
        PREDICATE,
        "the node has another operating system than spec.os.name: correct nodeSelector",
    ),
    wording(
        "SysctlForbidden: *",
        "pkg/kubelet/sysctl/allowlist.go",
        "kubelet does not allow the sysctl: remove it from the Pod, or allow it by --allowed-unsafe-sysctls",
    ),
    wording(
        "AppArmor: Cannot enforce AppArmor: AppArmor is not enabled on the host",
        "pkg/security/apparmor/validate.go",
        "the node has no AppArmor: use another node, or remove appArmorProfile from the Pod",
    ),
    wording(
        "AppArmor: *",
        "pkg/kubelet/lifecycle/handlers.go",
        "the AppArmor profile is not on the node: install it, or use another",
    ),
    wording(
        "NodeShutdown: *",
        "pkg/kubelet/nodeshutdown/nodeshutdown_manager.go",
        "the node shuts down or restarts: look at the node",
    ),
    wording(
        "Terminated: Pod was terminated in response to imminent node shutdown.",
        "pkg/kubelet/nodeshutdown/nodeshutdown_manager.go",
        "the node shuts down or restarts: look at the node",
    ),
    wording("NodeLost: *", "pkg/util/node/node.go", NODE),
];
