//! Why the scheduler finds no node: the reasons in the message of the condition `PodScheduled`.

use super::{Wording, wording};

const NODE_STATE: &str =
    "the taint shows the state of the nodes: kubectl describe node, and repair them or add others";
const AGENT: &str = "an agent that the nodes need, of the network plugin or of a CSI driver, is not ready on them: kubectl describe node, and look at the Pods of its DaemonSet";
const REMOVED: &str = "the nodes are being removed by the autoscaler: wait for its new nodes, or add some";
const VOLUME_ELSEWHERE: &str = "its volume exists in another zone or on another node, which has no room: look at the node affinity of the PersistentVolume";
const POD_AFFINITY: &str = "compare podAffinity, podAntiAffinity and topologySpreadConstraints of the Pod with the Pods on the nodes, or add nodes";
const CLAIM: &str = "look at the claim: kubectl describe pvc";
const IN_USE: &str =
    "another Pod uses the claim, whose access mode is ReadWriteOncePod: stop that Pod, or use another claim";

/// Each Pod of a DaemonSet names its own node by an affinity, which the other nodes do not match.
pub(crate) const NODE_AFFINITY: &str = "node(s) didn't match Pod's node affinity/selector";
/// The reason for nodes that are too full, which names the resource.
pub(crate) const INSUFFICIENT: &str = "Insufficient *";

/// The reasons for single nodes, and for all nodes. Of several reasons, the first of this table is the
/// nearest to a node that fits.
pub(crate) const REASONS: &[Wording] = &[
    wording(
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
        "pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go, from 1.34",
        IN_USE,
    ),
    wording(
        "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",
        "pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go, to 1.33",
        IN_USE,
    ),
    wording(
        INSUFFICIENT,
        "pkg/scheduler/framework/plugins/noderesources/fit.go",
        "lower the requests of the Pod, which include those of the sidecar, or add nodes",
    ),
    wording(
        "node(s) had volume node affinity conflict",
        "pkg/scheduler/framework/plugins/volumebinding/binder.go, to 1.32",
        VOLUME_ELSEWHERE,
    ),
    wording(
        "node(s) didn't match PersistentVolume's node affinity",
        "pkg/scheduler/framework/plugins/volumebinding/binder.go, from 1.33",
        VOLUME_ELSEWHERE,
    ),
    wording(
        "node(s) had no available volume zone",
        "pkg/scheduler/framework/plugins/volumezone/volume_zone.go",
        VOLUME_ELSEWHERE,
    ),
    wording(
        "Too many pods",
        "pkg/scheduler/framework/plugins/noderesources/fit.go",
        "the nodes run as many Pods as they may: add nodes",
    ),
    wording(
        "node(s) exceed max volume count",
        "pkg/scheduler/framework/plugins/nodevolumelimits/csi.go",
        "the nodes have as many volumes attached as their driver allows: add nodes, or use fewer volumes",
    ),
    wording(
        "node(s) didn't find available persistent volumes to bind",
        "pkg/scheduler/framework/plugins/volumebinding/binder.go",
        "no PersistentVolume fits the claim: compare its class, size, access modes and node affinity",
    ),
    wording(
        "node(s) did not have enough free storage",
        "pkg/scheduler/framework/plugins/volumebinding/binder.go",
        "the storage of the nodes is used up: lower the size of the claim, or add storage",
    ),
    wording(
        "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
        "pkg/scheduler/framework/plugins/volumebinding/binder.go",
        "the PersistentVolume of the claim was deleted: restore it, or create the claim again",
    ),
    wording(
        "persistentvolumeclaim * bound to non-existent persistentvolume *",
        "pkg/scheduler/framework/plugins/volumebinding/volume_binding.go",
        "the PersistentVolume of the claim was deleted: restore it, or create the claim again",
    ),
    wording(
        "pod has unbound immediate PersistentVolumeClaims*",
        "pkg/scheduler/framework/plugins/volumebinding/volume_binding.go",
        "the claim has no volume: kubectl describe pvc. Does its StorageClass exist, and does the provisioner run?",
    ),
    wording(
        "persistentvolumeclaim * not found",
        "pkg/scheduler/framework/plugins/volumebinding/volume_binding.go",
        "create the PersistentVolumeClaim in the namespace of the Pod, or correct its name",
    ),
    wording(
        "persistentvolumeclaim * is being deleted",
        "pkg/scheduler/framework/plugins/volumebinding/volume_binding.go",
        "the claim is being deleted while the Pod needs it: create another claim, and the Pod again",
    ),
    wording(
        "waiting for ephemeral volume controller to create the persistentvolumeclaim *",
        "pkg/scheduler/framework/plugins/volumebinding/volume_binding.go",
        CLAIM,
    ),
    wording(
        "node(s) had no available disk",
        "pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go",
        "another Pod on the nodes uses the same disk: stop it, or use another disk",
    ),
    wording(
        "node(s) didn't have free ports for the requested pod ports",
        "pkg/scheduler/framework/plugins/nodeports/node_ports.go",
        "another Pod has the hostPort on each node; choose another one",
    ),
    wording(
        "node(s) didn't match pod topology spread constraints*",
        "pkg/scheduler/framework/plugins/podtopologyspread/plugin.go",
        POD_AFFINITY,
    ),
    wording(
        "node(s) didn't match pod anti-affinity rules",
        "pkg/scheduler/framework/plugins/interpodaffinity/filtering.go",
        POD_AFFINITY,
    ),
    wording(
        "node(s) didn't match pod affinity rules",
        "pkg/scheduler/framework/plugins/interpodaffinity/filtering.go",
        POD_AFFINITY,
    ),
    wording(
        "node(s) didn't satisfy existing pods anti-affinity rules",
        "pkg/scheduler/framework/plugins/interpodaffinity/filtering.go",
        POD_AFFINITY,
    ),
    wording(
        "cannot allocate all claims",
        "pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go",
        "no node has a free device for the ResourceClaim: kubectl describe resourceclaim",
    ),
    wording(
        "resourceclaim in use",
        "pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go",
        "other Pods use the ResourceClaim, and no more may: stop one of them, or use another claim",
    ),
    wording(
        "pod \"*\": ResourceClaim not created yet",
        "dynamic-resource-allocation, resourceclaim/claim.go",
        "the ResourceClaim of the Pod's template does not exist yet: does the ResourceClaimTemplate exist, and does kube-controller-manager run?",
    ),
    wording(
        "resourceclaim* \"*\" not found",
        "pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go",
        "create the ResourceClaim in the namespace of the Pod, or correct its name",
    ),
    wording(
        NODE_AFFINITY,
        "pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go",
        "compare nodeSelector and affinity of the Pod with the labels of the nodes",
    ),
    wording(
        "node(s) didn't match the requested node name",
        "pkg/scheduler/framework/plugins/nodename/node_name.go",
        "the Pod names its node: correct spec.nodeName, or remove it",
    ),
    wording(
        "node(s) were unschedulable",
        "pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go",
        "the nodes are cordoned: kubectl uncordon, or add nodes",
    ),
    wording(
        "node(s) had untolerated taint* {node.kubernetes.io/unschedulable: *}",
        "pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go, to 1.33",
        "the nodes are cordoned: kubectl uncordon, or add nodes",
    ),
    wording(
        "node(s) had untolerated taint* {node.kubernetes.io/*: *}",
        "pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go, to 1.33",
        NODE_STATE,
    ),
    wording(
        "node(s) had untolerated taint* {node.cloudprovider.kubernetes.io/uninitialized: *}",
        "cloud-provider, api/well_known_taints.go",
        "the cloud controller manager has not initialized the nodes (kubectl describe node): does it run? Look at its log",
    ),
    wording(
        "node(s) had untolerated taint* {node.cloudprovider.kubernetes.io/*: *}",
        "cloud-provider, api/well_known_taints.go",
        NODE_STATE,
    ),
    wording("node(s) had untolerated taint* {*/agent-not-ready: *}", "Cilium and CSI drivers", AGENT),
    wording("node(s) had untolerated taint* {karpenter.sh/disrupt*: *}", "Karpenter", REMOVED),
    wording(
        "node(s) had untolerated taint* {ToBeDeletedByClusterAutoscaler: *}",
        "kubernetes/autoscaler, utils/taints",
        REMOVED,
    ),
    wording(
        "node(s) had untolerated taint* {DeletionCandidateOfClusterAutoscaler: *}",
        "kubernetes/autoscaler, utils/taints",
        REMOVED,
    ),
    wording(
        "node(s) had untolerated taint* {node-role.kubernetes.io/control-plane: *}",
        "kubeadm, and the taint_toleration.go of above",
        "the nodes are those of the control plane: add worker nodes, or a toleration to the Pod",
    ),
    wording(
        "node(s) had untolerated taint* {*: *}",
        "pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go, to 1.33",
        "add a toleration to the Pod, or remove the taint from a node",
    ),
    wording(
        "node(s) had untolerated taint(s)",
        "pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go, from 1.34",
        "the nodes have taints, which kubectl describe node shows: add a toleration to the Pod, remove the taint from a node, or repair a node whose taint shows its state",
    ),
    wording(
        "running PreBind plugin \"VolumeBinding\": *",
        "pkg/scheduler/framework/runtime/framework.go",
        "the volume of the claim was not provisioned or bound in time: kubectl describe pvc, and look at the log of its provisioner",
    ),
    wording(
        "no nodes available to schedule pods",
        "pkg/scheduler/schedule_one.go",
        "the cluster has no node: add one",
    ),
];

/// Returns true if the node itself takes no Pods, or not each one.
pub(crate) fn is_of_node(wording: &Wording) -> bool {
    let taint = wording.pattern.starts_with("node(s) had untolerated taint");
    taint || wording.pattern == "node(s) were unschedulable"
}

/// Splits `0/3 nodes are available: 2 Insufficient cpu, 1 node(s) had … . preemption: …` into its
/// reasons, without their numbers of nodes.
pub(crate) fn reasons(message: &str) -> Vec<&str> {
    let Some((nodes, rest)) = message.split_once(" nodes are available: ") else {
        return vec![message.trim().trim_end_matches('.')];
    };
    if !matches!(nodes.split_once('/'), Some((_, all)) if all.parse::<u64>().is_ok()) {
        return vec![message.trim()];
    }
    // After the reasons, the message lists what else the scheduler has tried: `no new claims to
    // deallocate, preemption: …`.
    let rest = rest.split_once(". ").map_or(rest, |(reasons, _)| reasons);
    let mut reasons: Vec<&str> = Vec::new();
    let mut start = 0;
    // A taint may contain a comma; a reason of the next group of nodes begins with their number.
    for (comma, _) in rest.match_indices(", ") {
        if rest.get(comma + 2..).is_some_and(|next| without_number(next).is_some()) {
            reasons.extend(rest.get(start..comma));
            start = comma + 2;
        }
    }
    reasons.extend(rest.get(start..));
    reasons
        .into_iter()
        .map(|reason| reason.trim().trim_end_matches('.'))
        .map(|reason| without_number(reason).unwrap_or(reason))
        .collect()
}

/// Returns what follows `3 `, if the text begins so.
fn without_number(text: &str) -> Option<&str> {
    let (number, rest) = text.split_once(' ')?;
    number.parse::<u64>().ok().map(|_| rest)
}
