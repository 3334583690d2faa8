//! A Docker daemon of our own, in namespaces of its own: it touches none that runs already, and all that it started, mounts and networks
//! included, ends with it. No registry is needed: the images are made of files of this machine.

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
use nix::unistd::{Pid, geteuid};

pub use container::Container;
pub use images::{BASE, BUSYBOX, CONTROL_PLANE, HELD, SIDECAR};

use crate::agent::Outcome;
use crate::container_tools::{self, find};
use crate::envoy;

/// What has to be there, and the package that brings it.
const PROGRAMS: [(&str, &str); 8] = [
    ("dockerd", "docker.io"),
    ("docker", "docker.io"),
    ("iptables", "iptables"),
    ("busybox", "busybox-static"),
    ("setpriv", "util-linux"),
    ("unshare", "util-linux"),
    ("ip", "iproute2"),
    ("ldd", "libc-bin"),
];

/// Starts the daemon as the first process of its namespaces, with unpacked programs over the machine's. What it leaves in `/run`, `/etc` and `/opt` is seen by nobody else.
const START: &str = r#"set -e
[ -z "$3" ] || mount -t overlay overlay -o "lowerdir=$3/usr:/usr" /usr
ip link set lo up
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /opt
mkdir /run/upper /run/work
mount -t overlay -o lowerdir=/etc,upperdir=/run/upper,workdir=/run/work overlay /etc
exec dockerd --config-file "$1/daemon.json" --data-root "$1/data" --host "unix://$1/sock" \
    --cgroup-parent "/$2" --exec-opt native.cgroupdriver=cgroupfs
"#;

/// How long the daemon may take until it answers.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running daemon with the images in it.
pub struct Daemon {
    folder: PathBuf,
    cgroup: String,
    child: Child,
}

impl Daemon {
    /// Starts it, and makes the images.
    ///
    /// # Errors
    /// Why this machine cannot have one.
    ///
    /// # Panics
    /// When the shipped Dockerfile cannot be built.
    pub fn start(name: &str) -> Result<Self, String> {
        let daemon = Self::start_empty(name)?;
        daemon.make_images();
        Ok(daemon)
    }

    /// Starts it without images.
    fn start_empty(name: &str) -> Result<Self, String> {
        if !geteuid().is_root() {
            return Err("a daemon needs root".to_owned());
        }
        if let Some((program, package)) = PROGRAMS.iter().find(|(program, _)| find(program).is_none()) {
            return Err(format!("{program} is missing: apt-get install {package}"));
        }
        let folder = envoy::folder(name);
        std::fs::write(folder.join("daemon.json"), "{}").expect("a writable folder");
        let log = File::create(folder.join("daemon.log")).expect("a writable folder");
        let cgroup = format!("app-health-{}-{name}", std::process::id());
        // Should this thread end in any way, so does the daemon, and with the first process of the namespaces all others.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "unshare"]);
        command.args(["--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child"]);
        command.args(["sh", "-c", START, "sh"]).arg(&folder).arg(&cgroup);
        command.arg(container_tools::folder().unwrap_or_default());
        let log_too = log.try_clone().expect("a descriptor");
        let child = command.stdin(Stdio::null()).stdout(log_too).stderr(log).spawn().expect("setpriv starts");
        let mut daemon = Self { folder, cgroup, child };
        daemon.answers()?;
        Ok(daemon)
    }

    fn answers(&mut self) -> Result<(), String> {
        let pause = Duration::from_millis(100);
        for _ in 0..PATIENCE.as_millis() / pause.as_millis() {
            if self.docker(&["version"]).code == Some(0) {
                return Ok(());
            }
            if self.child.try_wait().expect("our child").is_some() {
                break;
            }
            std::thread::sleep(pause);
        }
        let log = std::fs::read_to_string(self.folder.join("daemon.log")).unwrap_or_default();
        Err(format!("dockerd does not start here: {}", log.lines().last().unwrap_or("it says nothing")))
    }

    /// The daemon's process: the first of its namespaces, whose end is that of all.
    fn first_process(&self) -> Option<Pid> {
        let id = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok().map(Pid::from_raw)
    }

    /// Runs the client to its end.
    pub fn docker(&self, arguments: &[&str]) -> Outcome {
        self.run_client(client().args(arguments))
    }

    /// The client's output.
    ///
    /// # Panics
    /// When it fails.
    pub fn ask(&self, arguments: &[&str]) -> String {
        let outcome = self.docker(arguments);
        assert_eq!(outcome.code, Some(0), "docker {arguments:?}: {outcome:?}");
        outcome.stdout.trim().to_owned()
    }

    /// Runs `docker compose` (or the older `docker-compose`) with our images; `None` where there is neither.
    ///
    /// # Panics
    /// When it fails.
    pub fn compose(&self, file: &Path, arguments: &[&str]) -> Option<String> {
        let is_plugin = self.docker(&["compose", "version"]).code == Some(0);
        let mut command = if is_plugin { client() } else { Command::new(find("docker-compose")?) };
        command.args(is_plugin.then_some("compose")).arg("--file").arg(file).args(arguments);
        command.envs([("BUSYBOX_IMAGE", BUSYBOX), ("SIDECAR_IMAGE", SIDECAR), ("ENVOY_IMAGE", BASE)]);
        let outcome = self.run_client(&mut command);
        assert_eq!(outcome.code, Some(0), "compose {arguments:?}: {outcome:?}");
        Some(outcome.stdout)
    }

    fn run_client(&self, command: &mut Command) -> Outcome {
        command.env("DOCKER_HOST", format!("unix://{}/sock", self.folder.display()));
        command.env("DOCKER_CONFIG", self.folder.join("client")).stdin(Stdio::null());
        let output = command.output().expect("the client starts");
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        Outcome { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// Runs `case` in the daemon's network, on a thread of its own with this name.
    ///
    /// # Panics
    /// When there can be no such thread.
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
        // In order, so that the control groups can go; the rest goes with the namespaces.
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
        // One hierarchy, or one in each folder; the newer builder has a group below ours.
        let root = PathBuf::from("/sys/fs/cgroup");
        for hierarchy in folders(&root).into_iter().chain([root]) {
            let ours = hierarchy.join(&self.cgroup);
            for folder in folders(&ours).into_iter().chain([ours]) {
                let _ = std::fs::remove_dir(folder);
            }
        }
        // Hundreds of megabytes, while the log is worth keeping. The mounts in it vanish a moment after the processes.
        for _ in 0..100 {
            if std::fs::remove_dir_all(self.folder.join("data")).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// The daemon's own client, which speaks its version.
fn client() -> Command {
    Command::new(find("docker").expect("it was looked for"))
}

/// What is directly below a folder; nothing where there is no such folder.
fn folders(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
