//! Why a volume cannot be attached or mounted.

use super::{Wording, hint, wording};

const CONFIG_MAP: &str = "create the ConfigMap in the namespace of the Pod, or mark the volume as optional";
const SECRET: &str = "create the Secret in the namespace of the Pod, or mark the volume as optional";
const CONFIG_KEY: &str =
    "the object exists, but lacks the key: correct the items of the volume, or add the key";
const ATTACHED: &str = "the volume is attached to another node: stop the Pod that uses it there";
const CACHE: &str = "kubelet cannot read the object from the API server: if it stays so, look at the log of kubelet, and whether the node reaches the API server";
const SERVER: &str = "the node does not reach the server of the volume: check its name and address, and the network and the firewall between them";
const FILE_SYSTEM: &str = "the file system of the volume is damaged, or not that of fsType: stop the Pod, check it from the node (fsck), or restore a backup";
const PENDING: &str =
    "a call of the CSI driver does not end: look at its log on the node, and whether the storage answers";
const RIGHTS: &str =
    "the cloud refuses the call: give the role of the CSI driver (IAM) the permission to attach volumes";
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
        "create the path on the node, or correct path and type of the hostPath volume: it does not exist there, or is of another type",
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
        "MountVolume.* failed for volume \"*\" : *failed to get secretproviderclass *",
        "secrets-store-csi-driver",
        "create the SecretProviderClass in the namespace of the Pod, or correct its name",
    ),
    wording(
        "MountVolume.* failed for volume \"*\" : *error connecting to provider \"*\": provider not found: *",
        "secrets-store-csi-driver",
        "the provider of the secrets store does not run on the node: install it, or look at its DaemonSet",
    ),
    hint(
        "MountVolume.* failed for volume \"*\" : *failed to mount secrets store objects for pod *",
        "secrets-store-csi-driver",
        "the secrets store refuses or lacks the secret: look at the SecretProviderClass, and at the log of its driver",
    ),
    wording(
        "MountVolume.* failed for volume \"*\" : *mount.nfs*: access denied by server while mounting *",
        "nfs-utils",
        "the server does not export the directory to the node: compare its exports with the address of the node and the path of the volume",
    ),
    wording(
        "MountVolume.* failed for volume \"*\" : *mount error(13): Permission denied*",
        "cifs-utils",
        "the server refuses the share: check the user and the password in the Secret of the volume, and whether the firewall of the storage account allows the node",
    ),
    wording(
        "MountVolume.* failed for volume \"*\" : *mount error(2): No such file or directory*",
        "cifs-utils",
        "the server has no such share: correct its name in the volume",
    ),
    wording(
        "MountVolume.* failed for volume \"*\" : *you might need a /sbin/mount.* helper program*",
        "util-linux",
        "the node lacks the program that mounts this file system: install it there, for example nfs-common (nfs-utils) or cifs-utils",
    ),
    wording(
        "MountVolume.* failed for volume \"*\" : *mount.nfs*: No such file or directory*",
        "nfs-utils",
        "the server does not export this directory: compare its exports with the path of the volume",
    ),
    wording(
        "MountVolume.* failed for volume \"*\" : *mount.nfs*: Connection timed out*",
        "nfs-utils",
        SERVER,
    ),
    wording("MountVolume.* failed for volume \"*\" : *mount.nfs*: Connection refused*", "nfs-utils", SERVER),
    wording("MountVolume.* failed for volume \"*\" : *mount.nfs*: No route to host*", "nfs-utils", SERVER),
    wording(
        "MountVolume.* failed for volume \"*\" : *mount.nfs*: Failed to resolve server *",
        "nfs-utils",
        SERVER,
    ),
    wording("MountVolume.* failed for volume \"*\" : *can't read superblock on *", "util-linux", FILE_SYSTEM),
    wording(
        "MountVolume.* failed for volume \"*\" : *'fsck' found errors on device *",
        "k8s.io/mount-utils",
        FILE_SYSTEM,
    ),
    wording(
        "MountVolume.* failed for volume \"*\" : *Structure needs cleaning*",
        "Linux, EUCLEAN",
        FILE_SYSTEM,
    ),
    hint(
        "MountVolume.* failed for volume \"*\" : mount failed: exit status *",
        "k8s.io/mount-utils",
        "the node cannot mount the file system: does it reach the server, and is the program that mounts this file system (for example mount.nfs) installed on it?",
    ),
    wording(
        "MountVolume.* failed for volume \"*\" : rpc error: code = Aborted desc = *",
        "the CSI driver",
        PENDING,
    ),
    wording(
        "MountVolume.* failed for volume \"*\" : rpc error: code = DeadlineExceeded desc = *",
        "the CSI driver",
        PENDING,
    ),
    hint(
        "MountVolume.* failed for volume \"*\" : rpc error: *",
        "the CSI driver",
        "the CSI driver cannot mount the volume: look at its log on the node, and at kubectl describe pvc",
    ),
    hint(
        "MapVolume.* failed for volume \"*\" : rpc error: *",
        "the CSI driver",
        "the CSI driver cannot map the block volume: look at its log on the node, and at kubectl describe pvc",
    ),
    wording(
        "Multi-Attach error for volume \"*\" *",
        "pkg/controller/volume/attachdetach/reconciler/reconciler.go",
        ATTACHED,
    ),
    wording(
        "AttachVolume.Attach failed for volume \"*\" : volume attachment is being deleted",
        "pkg/volume/csi/csi_attacher.go",
        "an earlier attachment of the volume is still being deleted: if it stays so, look at its VolumeAttachment, and at the log of the controller of the CSI driver, which must detach it",
    ),
    wording(
        "AttachVolume.Attach failed for volume \"*\" : *CSINode * does not contain driver *",
        "external-attacher",
        NO_DRIVER,
    ),
    wording("AttachVolume.Attach failed for volume \"*\" : *UnauthorizedOperation*", "AWS, EC2", RIGHTS),
    wording("AttachVolume.Attach failed for volume \"*\" : *AuthorizationFailed*", "Azure", RIGHTS),
    wording(
        "AttachVolume.Attach failed for volume \"*\" : rpc error: code = PermissionDenied desc = *",
        "the CSI driver",
        RIGHTS,
    ),
    wording(
        "AttachVolume.Attach failed for volume \"*\" : * already attached to *",
        "the CSI driver",
        "the storage still has the volume attached elsewhere: stop the Pod that uses it there, or detach it",
    ),
    hint(
        "AttachVolume.Attach failed for volume \"*\" : rpc error: *",
        "the CSI driver",
        "the CSI driver cannot attach the volume to the node: look at the log of its controller",
    ),
    wording(
        "AttachVolume.Attach failed for volume \"*\" : timed out waiting for external-attacher of * CSI driver to attach volume *",
        "pkg/volume/csi/csi_attacher.go",
        "the controller of the CSI driver does not answer: does it run?",
    ),
];
