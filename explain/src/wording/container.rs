//! Why kubelet or the runtime cannot create a container.

use super::{Wording, hint, wording};

/// What to do if the node cannot execute the file of the command.
pub(crate) const EXEC_FORMAT: &str = "the image is made for another CPU architecture than that of the node, or its command is a script without #!: use an image for both, or a nodeSelector";
const CONFIG_MAP: &str = "create the ConfigMap or the key, or mark the reference as optional";
const SECRET: &str = "create the Secret or the key, or mark the reference as optional";
const ROOT: &str = "set runAsUser to a number other than 0, or use an image with another user";
const MOUNT: &str = "compare volumeMounts, and subPath, with the files of the volume and of the image";
const COMMAND: &str = "correct the command of the container";
const CACHE: &str = "kubelet cannot read the object from the API server: if it stays so, look at the log of kubelet, and whether the node reaches the API server";

const ENVIRONMENT: &str = "pkg/kubelet/kubelet_pods.go";
const NON_ROOT: &str = "pkg/kubelet/kuberuntime/security_context_others.go";
const RUNC: &str = "runc, libcontainer";

pub(crate) const TABLE: &[Wording] = &[
    wording("configmap \"*\" not found", ENVIRONMENT, CONFIG_MAP),
    wording("couldn't find key * in ConfigMap *", ENVIRONMENT, CONFIG_MAP),
    wording("secret \"*\" not found", ENVIRONMENT, SECRET),
    wording("couldn't find key * in Secret *", ENVIRONMENT, SECRET),
    wording("failed to sync configmap cache: *", "pkg/kubelet/util/manager/cache_based_manager.go", CACHE),
    wording("failed to sync secret cache: *", "pkg/kubelet/util/manager/cache_based_manager.go", CACHE),
    wording(
        "services have not yet been read at least once, cannot construct envvars",
        ENVIRONMENT,
        "kubelet cannot read the Services from the API server: if it stays so, look at the log of kubelet",
    ),
    wording("container has runAsNonRoot and image will run as root*", NON_ROOT, ROOT),
    wording(
        "container has runAsNonRoot and image has non-numeric user *",
        NON_ROOT,
        "set runAsUser to the number of the image's user: kubelet cannot tell by a name that it is not root",
    ),
    wording(
        "container's runAsUser breaks non-root policy*",
        NON_ROOT,
        "runAsUser is 0 and runAsNonRoot is true: change one of them",
    ),
    wording("cannot find volume \"*\" to mount into container *", ENVIRONMENT, MOUNT),
    wording("failed to create subPath directory for volumeMount *", ENVIRONMENT, MOUNT),
    wording("failed to prepare subPath for volumeMount *", ENVIRONMENT, MOUNT),
    wording("*exec format error*", RUNC, EXEC_FORMAT),
    wording("*error mounting \"/*", RUNC, MOUNT),
    wording("*: executable file not found in $PATH*", RUNC, COMMAND),
    wording("*executable file `*` not found*", "crun", COMMAND),
    wording("*exec: \"*\": stat *: no such file or directory*", RUNC, COMMAND),
    wording("*exec: \"*\": is a directory*", RUNC, COMMAND),
    wording(
        "*exec *: no such file or directory*",
        RUNC,
        "the interpreter or the library loader of the command is not in the image: compare the #! line, its line ends, and the C library",
    ),
    wording(
        "*chdir to cwd (\"*\") set in config.json failed: *",
        RUNC,
        "the working directory does not exist in the image, or the container's user may not enter it: correct workingDir or runAsUser",
    ),
    wording(
        "*exec: \"*\": permission denied*",
        RUNC,
        "the file of the command is not executable for the container's user: correct its mode in the image",
    ),
    wording(
        "*container init was OOM-killed (memory limit too low?)*",
        RUNC,
        "raise the memory limit: it is too low for the container to start",
    ),
    wording(
        "*failed to write \"*\": write /sys/fs/cgroup/*memory*: device or resource busy*",
        RUNC,
        "raise the memory limit: it is too low for the container to start",
    ),
    wording(
        "*unable to find user *: no matching entries in passwd file*",
        RUNC,
        "the user is not in the image: use a number for runAsUser, or another user",
    ),
    wording(
        "*cannot load seccomp profile *",
        "containerd and CRI-O, seccomp",
        "the seccomp profile is not on the node: install it, or use another",
    ),
    wording(
        "*write /proc/self/attr/keycreate: invalid argument*",
        RUNC,
        "SELinux on the node does not know the type in seLinuxOptions: install its policy there, or correct the type",
    ),
    wording(
        "*apparmor profile not found *",
        "containerd, internal/cri",
        "the AppArmor profile is not on the node: load it, or use another",
    ),
    wording(
        "*error gathering device information while adding custom device \"*\": *",
        "Docker and containerd, devices",
        "the device does not exist on the node: use another node, or load its driver there",
    ),
    wording(
        "*nvidia-container-cli: *driver/library version mismatch*",
        "NVIDIA, libnvidia-container",
        "the NVIDIA driver of the node was updated, but the old one still runs: restart the node",
    ),
    hint(
        "*nvidia-container-cli: *",
        "NVIDIA, libnvidia-container",
        "the NVIDIA driver of the node does not work: run nvidia-smi there",
    ),
    wording(
        "*The container operating system does not match the host operating system.*",
        "hcsshim",
        "the image is made for another version of Windows than that of the node: use one of the same build, or a nodeSelector for node.kubernetes.io/windows-build",
    ),
    wording(
        "*Kubelet may be retrying requests that are timing out in CRI-O due to system load*",
        "CRI-O, server/utils.go",
        "the runtime has not finished an earlier try: look at the load and the disk of the node, and whether it relabels a large volume for SELinux",
    ),
    wording(
        "*: no command specified*",
        "containerd, pkg/oci",
        "the image has no command: set the command of the container",
    ),
    wording(
        "*failed to reserve container name *",
        "containerd, internal/cri",
        "the runtime still has the container of the last try: if it stays so, restart the runtime of the node",
    ),
    wording(
        "*is mounted on \"*\" but it is not a shared mount*",
        "containerd and CRI-O",
        "mountPropagation needs a shared mount on the node: make it shared, or do without",
    ),
    wording(
        "context deadline exceeded",
        "kubelet's client of the runtime",
        "the runtime of the node does not answer in time: look at the load and the disk of the node",
    ),
    wording(
        "rpc error: code = DeadlineExceeded desc = context deadline exceeded",
        "kubelet's client of the runtime",
        "the runtime of the node does not answer in time: look at the load and the disk of the node",
    ),
];
