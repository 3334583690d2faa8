//! The mount, network and process namespaces of a node: what happens in them touches nothing of the machine, and ends with the test.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use nix::sched::{CloneFlags, setns};

/// The namespaces; their end is the end of all that runs in them.
pub(super) struct Namespaces {
    keeper: Child,
    /// The keeper reads to the end of it, which also comes when the test is killed.
    held: Option<ChildStdin>,
    /// The number of their first process.
    first: u32,
}

impl Namespaces {
    /// Makes them. What is on the node lies in `folder/data`, what it logs in `folder/log`.
    ///
    /// # Panics
    /// When this machine does not let us; with what the system said.
    pub(super) fn start(folder: &Path, tools: Option<&Path>, cgroup: &str) -> Self {
        let file = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).expect("a writable folder");
            path
        };
        let keep = file("keep.sh", include_str!("keep.sh"));
        let start = file("start.sh", include_str!("start.sh"));
        let log = File::create(folder.join("log/namespaces.log")).expect("a writable folder");
        let mut command = Command::new("setsid");
        command.arg("sh").arg(&keep).arg(folder).arg(tools.unwrap_or(Path::new(""))).arg(cgroup).arg(&start);
        command.stdin(Stdio::piped()).stdout(log.try_clone().expect("a descriptor")).stderr(log);
        let mut keeper = command.spawn().expect("setsid starts");
        let held = keeper.stdin.take();
        let mut namespaces = Self { keeper, held, first: 0 };
        for _ in 0..200 {
            if folder.join("started").exists() {
                namespaces.first = descendant(namespaces.keeper.id(), 2).expect("it has started");
                return namespaces;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let log = std::fs::read_to_string(folder.join("log/namespaces.log")).unwrap_or_default();
        panic!("no namespaces can be had here: {log}");
    }

    /// This thread, and whatever it starts, is in their network from now on.
    ///
    /// # Panics
    /// When they have ended.
    pub(super) fn enter(&self) {
        let network = File::open(self.file("net")).expect("the node runs");
        setns(network.as_fd(), CloneFlags::CLONE_NEWNET).expect("root may enter a network");
    }

    /// A program that runs inside.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.first.to_string(), "--mount", "--net", "--pid", "--"]).arg(program);
        command
    }

    fn file(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/ns/{name}", self.first))
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        self.held = None;
        let _ = self.keeper.wait();
    }
}

/// The first child's first child, or a later generation.
pub(super) fn descendant(process: u32, generations: u32) -> Option<u32> {
    (0..generations).try_fold(process, |process, _| {
        let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok()
    })
}
