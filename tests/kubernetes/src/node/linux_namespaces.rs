//! The mount, network and PID namespaces of a node, which isolate it from the machine and end with
//! the test.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use kit::wait;
use nix::sched::{CloneFlags, setns};

/// The namespaces; dropping this kills all processes in them.
pub(super) struct LinuxNamespaces {
    reaper: Child,
    /// Standard input of the reaper script, which reads it until it is closed, even if the test is
    /// killed.
    reaper_stdin: Option<ChildStdin>,
    /// The PID of the first process.
    init_pid: u32,
}

impl LinuxNamespaces {
    /// Creates the namespaces. Data of the node is in `folder/data`, its logs in `folder/log`.
    ///
    /// # Panics
    /// If they cannot be created; the message contains the reason.
    pub(super) fn start(folder: &Path, tools: Option<&Path>, cgroup: &str) -> Self {
        let file = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).expect("a writable folder");
            path
        };
        let reaper_script = file("reaper.sh", include_str!("reaper.sh"));
        let start = file("start.sh", include_str!("start.sh"));
        let log = File::create(folder.join("log/namespaces.log")).expect("a writable folder");
        let mut command = Command::new("setsid");
        command
            .arg("sh")
            .arg(&reaper_script)
            .arg(folder)
            .arg(tools.unwrap_or(Path::new("")))
            .arg(cgroup)
            .arg(&start);
        command.stdin(Stdio::piped()).stdout(log.try_clone().expect("a descriptor")).stderr(log);
        let mut reaper = command.spawn().expect("setsid starts");
        let reaper_stdin = reaper.stdin.take();
        let mut namespaces = Self { reaper, reaper_stdin, init_pid: 0 };
        let log = || std::fs::read_to_string(folder.join("log/namespaces.log")).unwrap_or_default();
        wait::until_blocking(
            || format!("cannot create the namespaces: {}", log()),
            || folder.join("started").exists(),
        );
        namespaces.init_pid = descendant(namespaces.reaper.id(), 2).expect("the first process has started");
        namespaces
    }

    /// Moves this thread, and every process that it starts, into the network namespace.
    ///
    /// # Panics
    /// If the node has ended.
    pub(super) fn enter(&self) {
        let network = File::open(self.file("net")).expect("the node runs");
        setns(network.as_fd(), CloneFlags::CLONE_NEWNET).expect("root may enter a network");
    }

    /// Returns a command that runs a program inside.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args(["--target", &self.init_pid.to_string(), "--mount", "--net", "--pid", "--"])
            .arg(program);
        command
    }

    fn file(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/ns/{name}", self.init_pid))
    }
}

impl Drop for LinuxNamespaces {
    fn drop(&mut self) {
        self.reaper_stdin = None;
        let _ = self.reaper.wait();
    }
}

/// Returns the first child's first child, or a later generation.
pub(super) fn descendant(process: u32, generations: u32) -> Option<u32> {
    (0..generations).try_fold(process, |process, _| {
        let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok()
    })
}
