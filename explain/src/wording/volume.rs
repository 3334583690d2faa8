//! Why a volume cannot be attached or mounted.

use super::{Wording, wording};

const CONFIG_MAP: &str = "create the ConfigMap in the namespace of the Pod, or mark the volume as optional";
const SECRET: &str = "create the Secret in the namespace of the Pod, or mark the volume as optional";
const CONFIG_KEY: &str =
    "the object exists, but lacks the key: correct the items of the volume, or add the key";
const ATTACHED: &str = "the volume is attached to another node: stop the Pod that uses it there";
const DRIVER: &str = "look at the claim and the driver: kubectl describe pvc";
const CACHE: &str = "kubelet cannot read the object from the API server: if it stays so, look at the log of kubelet, and whether the node reaches the API server";
const NO_DRIVER: &str = "the CSI driver does not run on the node: look at its DaemonSet";

pub(crate) const TABLE: &[Wording] = &[
    wording(
        "MountVolume.* failed for volume \"*\" : failed to fetch token: serviceaccounts \"*\" not found",
        "pkg/volume/projected/projected.go",
        "create the service account in the namespace of the Pod",
    ),
    wording(
        "MountVolume.* failed for volume \"*\" : object \"*\"/\"*\" not registered",
        "pkg/kubelet/util/manager",
        "kubelet has not read the object yet; if it stays so, look at the log of kubelet",
    ),
    wording(
        "MountVolume.* failed for volume \"*\" : configmap \"*\" not found",
        "pkg/volume/configmap/configmap.go",
        CONFIG_MAP,
    ),
    wording(
        "MountVolume.* failed for volume \"*\" : secret \"*\" not found",
        "pkg/volume/secret/secret.go",
        SECRET,
    ),
    wording(
        "MountVolume.* failed for volume \"*\" : configmap references non-existent config key: *",
        "pkg/volume/configmap/configmap.go",
        CONFIG_KEY,
    ),
    wording(
        "MountVolume.* failed for volume \"*\" : references non-existent config key: *",
        "pkg/volume/configmap/configmap.go",
        CONFIG_KEY,
    ),
    wording(
        "MountVolume.* failed for volume \"*\" : references non-existent secret key: *",
        "pkg/volume/secret/secret.go",
        CONFIG_KEY,
    ),
    wording(
        "MountVolume.* failed for volume \"*\" : failed to sync * cache: *",
        "pkg/kubelet/util/manager",
        CACHE,
    ),
    wording(
        "MountVolume.* failed for volume \"*\" : hostPath type check failed: *",
        "pkg/volume/hostpath/host_path.go",
        "create the path on the node, or change the type of the volume",
    ),
    wording(
        "MountVolume.NewMounter initialization failed for volume \"*\" : path \"*\" does not exist",
        "pkg/volume/local/local.go",
        "the directory of the local volume does not exist on the node: create it, or correct the PersistentVolume",
    ),
    wording(
        "MountVolume.* failed for volume \"*\" : * driver name * not found in the list of registered CSI drivers",
        "pkg/volume/csi/csi_client.go",
        NO_DRIVER,
    ),
    wording(
        "MountVolume.* failed for volume \"*\" : *failed to mount secrets store objects for pod *",
        "secrets-store-csi-driver",
        "the secrets store refuses or lacks the secret: look at the SecretProviderClass, and at the log of its driver",
    ),
    wording(
        "MountVolume.* failed for volume \"*\" : mount failed: exit status *",
        "k8s.io/mount-utils",
        "the node cannot mount the file system: does it reach the server, and is the program that mounts this file system (for example mount.nfs) installed on it?",
    ),
    wording(
        "MountVolume.* failed for volume \"*\" : rpc error: *",
        "the CSI driver",
        "the CSI driver refuses to mount the volume: look at its log on the node, and at kubectl describe pvc",
    ),
    wording(
        "Multi-Attach error for volume \"*\" *",
        "pkg/controller/volume/attachdetach/reconciler/reconciler.go",
        ATTACHED,
    ),
    wording(
        "AttachVolume.Attach failed for volume \"*\" : volume attachment is being deleted",
        "pkg/volume/csi/csi_attacher.go",
        ATTACHED,
    ),
    wording(
        "AttachVolume.Attach failed for volume \"*\" : rpc error: *",
        "the CSI driver",
        "the CSI driver cannot attach the volume to the node: look at the log of its controller",
    ),
    wording(
        "AttachVolume.Attach failed for volume \"*\" : timed out waiting for external-attacher of * CSI driver to attach volume *",
        "pkg/volume/csi/csi_attacher.go",
        "the controller of the CSI driver does not answer: does it run?",
    ),
    wording("Unable to attach or mount volumes: *", "pkg/kubelet/volumemanager/volume_manager.go", DRIVER),
];
