//! Why kubelet cannot remove a Pod that is being deleted.

use super::{Wording, hint, wording};

const KILL: &str = "pkg/kubelet/kubelet.go, and the runtime";

pub(crate) const TABLE: &[Wording] = &[
    wording(
        "error killing pod: *failed to destroy network for *",
        KILL,
        "the network plugin of the node cannot remove the Pod's network: do its Pods run? Look at their log",
    ),
    wording(
        "error killing pod: *failed to teardown pod * network: *",
        KILL,
        "the network plugin of the node cannot remove the Pod's network: do its Pods run? Look at their log",
    ),
    wording(
        "error killing pod: *failed to \"KillContainer\" for *",
        KILL,
        "the runtime of the node cannot stop the container: look at its log, and whether the process waits for a disk or for the network",
    ),
    hint("error killing pod: *", KILL, "the runtime of the node cannot remove the Pod: look at its log"),
];
