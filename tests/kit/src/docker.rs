//! A separate Docker daemon in its own namespaces. It affects no running daemon, and everything
//! that it started, including mounts and networks, ends with it. No registry is needed, because the
//! images are built from files of this machine.

pub mod archive;
mod container;
mod images;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

pub use container::Container;
pub use images::{BASE, BUSYBOX, CONTROL_PLANE, HELD, SIDECAR};

use crate::agent::Outcome;
use crate::container_tools::{self, find};
use crate::envoy;
use crate::not_tested;
use crate::wait;

/// The required programs; `./justw --containers` unpacks those that a machine usually lacks.
const PROGRAMS: [&str; 8] = ["dockerd", "docker", "iptables", "busybox", "setpriv", "unshare", "ip", "ldd"];

/// Starts the daemon as the first process of its namespaces, with the unpacked programs mounted
/// over those of the machine. Its files in `/run`, `/etc` and `/opt` are visible only inside.
const START: &str = r#"set -e
[ -z "$3" ] || mount -t overlay overlay -o "lowerdir=$3/usr:/usr" /usr
ip link set lo up
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /opt
mkdir /run/upper /run/work
mount -t overlay -o lowerdir=/etc,upperdir=/run/upper,workdir=/run/work overlay /etc
# runc refuses a root file system behind a link.
data=$(readlink -f "$1")/data
until dockerd --config-file "$1/daemon.json" --data-root "$data" --host "unix://$1/sock" \
    --cgroup-parent "/$2" --exec-opt native.cgroupdriver=cgroupfs
do
    # dockerd gives containerd 15 s, which can be too short on a busy machine.
    grep -q "timeout waiting for containerd" "$1/daemon.log" || exit 1
    : > "$1/daemon.log"
done
"#;

/// A running daemon with the images loaded.
pub struct Daemon {
    folder: PathBuf,
    cgroup: String,
    child: Child,
}

impl Daemon {
    /// Starts the daemon and builds the images. Without root or one of the programs, `None` is
    /// returned and reported on stderr.
    ///
    /// # Panics
    /// If the daemon does not start, or a shipped Dockerfile cannot be built.
    pub fn start(name: &str) -> Option<Self> {
        not_tested::has_root_and("the images in containers", &PROGRAMS).then(|| {
            let daemon = Self::start_empty(name);
            daemon.make_images();
            daemon
        })
    }

    /// Starts the daemon without images.
    fn start_empty(name: &str) -> Self {
        let folder = envoy::folder(name);
        std::fs::write(folder.join("daemon.json"), "{}").expect("a writable folder");
        let log = File::options().create(true).append(true).open(folder.join("daemon.log"));
        let log = log.expect("a writable folder");
        let cgroup = format!("app-health-{}-{name}", std::process::id());
        // If this thread ends for any reason, the daemon is killed, and all other processes of its
        // PID namespace with it.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "unshare"]);
        command.args(["--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child"]);
        command.args(["sh", "-c", START, "sh"]).arg(&folder).arg(&cgroup);
        command.arg(container_tools::folder().unwrap_or_default());
        let log_too = log.try_clone().expect("a descriptor");
        let child = command.stdin(Stdio::null()).stdout(log_too).stderr(log).spawn().expect("setpriv starts");
        let mut daemon = Self { folder, cgroup, child };
        daemon.until_ready();
        daemon
    }

    fn until_ready(&mut self) {
        let pause = Duration::from_millis(100);
        for _ in 0..wait::timeout().as_millis() / pause.as_millis() {
            if self.docker(&["version"]).code == Some(0) {
                return;
            }
            if self.child.try_wait().expect("our child").is_some() {
                break;
            }
            std::thread::sleep(pause);
        }
        let log = std::fs::read_to_string(self.folder.join("daemon.log")).unwrap_or_default();
        panic!("dockerd does not start:\n{log}");
    }

    /// Returns the first process of the daemon's PID namespace; killing it ends all others.
    fn first_process(&self) -> Option<Pid> {
        let id = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok().map(Pid::from_raw)
    }

    /// Runs the Docker client until it exits.
    pub fn docker(&self, arguments: &[&str]) -> Outcome {
        self.run_client(client().args(arguments))
    }

    /// Runs the Docker client and returns its output.
    ///
    /// # Panics
    /// If the client fails.
    pub fn ask(&self, arguments: &[&str]) -> String {
        let outcome = self.docker(arguments);
        assert_eq!(outcome.code, Some(0), "docker {arguments:?}: {outcome:?}");
        outcome.stdout.trim().to_owned()
    }

    /// Returns whether `docker-compose` or the plugin of Docker's client is installed.
    pub fn has_compose(&self) -> bool {
        find("docker-compose").is_some() || self.docker(&["compose", "version"]).code == Some(0)
    }

    /// Runs `docker-compose`, or `docker compose` if that program is not installed, with the images
    /// of the tests.
    ///
    /// # Panics
    /// If the command fails.
    pub fn compose(&self, file: &Path, arguments: &[&str]) {
        let mut command = if find("docker-compose").is_some() {
            container_tools::command("docker-compose")
        } else {
            let mut plugin = client();
            plugin.arg("compose");
            plugin
        };
        command.arg("--file").arg(file).args(arguments);
        command.envs([("BUSYBOX_IMAGE", BUSYBOX), ("SIDECAR_IMAGE", SIDECAR), ("ENVOY_IMAGE", BASE)]);
        let outcome = self.run_client(&mut command);
        assert_eq!(outcome.code, Some(0), "compose {arguments:?}: {outcome:?}");
    }

    fn run_client(&self, command: &mut Command) -> Outcome {
        command.env("DOCKER_HOST", format!("unix://{}/sock", self.folder.display()));
        command.env("DOCKER_CONFIG", self.folder.join("client")).stdin(Stdio::null());
        let output = command.output().expect("the client starts");
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        Outcome { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// Runs `case` on a new thread of this name in the network namespace of the daemon.
    ///
    /// # Panics
    /// If the thread cannot be started.
    pub fn spawn<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        name: &str,
        case: impl AsyncFnOnce(&'scope Self) + Send + 'scope,
    ) -> ScopedJoinHandle<'scope, ()> {
        let run = move || {
            let network = File::open(format!("/proc/{}/ns/net", self.child.id())).expect("the daemon runs");
            setns(network, CloneFlags::CLONE_NEWNET).expect("root may enter a network");
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(case(self));
        };
        std::thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, run).expect("a thread")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Containers are removed first, so that their control groups can be deleted; everything
        // else ends with the namespaces.
        let all = self.docker(&["ps", "--all", "--quiet"]).stdout;
        let remove: Vec<&str> = ["rm", "--force"].into_iter().chain(all.split_whitespace()).collect();
        if remove.len() > 2 {
            self.docker(&remove);
        }
        if let Some(first) = self.first_process() {
            let _ = kill(first, Signal::SIGKILL);
        } else {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
        // cgroup v2 has one hierarchy, v1 has one in each folder; BuildKit creates a child group
        // below the daemon's.
        let root = PathBuf::from("/sys/fs/cgroup");
        for hierarchy in folders(&root).into_iter().chain([root]) {
            let ours = hierarchy.join(&self.cgroup);
            for folder in folders(&ours).into_iter().chain([ours]) {
                let _ = std::fs::remove_dir(folder);
            }
        }
        // The data takes hundreds of megabytes, while the log is kept. Mounts disappear a moment
        // after the processes, so removal is retried.
        for _ in 0..100 {
            if std::fs::remove_dir_all(self.folder.join("data")).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Returns the client that was found beside the daemon and supports its API version.
fn client() -> Command {
    Command::new(find("docker").expect("docker was found before"))
}

/// Returns the entries directly below a folder; none if it does not exist.
fn folders(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
