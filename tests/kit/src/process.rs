//! Resource usage of a process: CPU time, memory, sockets.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

/// Returns the children of a process that have not exited.
///
/// # Panics
/// If `/proc` cannot be read.
pub fn children(parent: Pid) -> Vec<Pid> {
    let processes = std::fs::read_dir("/proc").expect("/proc is mounted").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).map(Pid::from_raw);
    pids.filter(|pid| state_and_parent(*pid).is_some_and(|(state, its)| state != 'Z' && its == parent))
        .collect()
}

/// Returns whether the process exists and is not a zombie.
pub fn is_alive(pid: Pid) -> bool {
    state_and_parent(pid).is_some_and(|(state, _)| state != 'Z')
}

/// Reads the state and the parent of a process from `/proc/<pid>/stat`; `None` if it does not exist.
fn state_and_parent(pid: Pid) -> Option<(char, Pid)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in parentheses, may contain spaces.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, Pid::from_raw(fields.next()?.parse().ok()?)))
}

/// A directory as another process sees it in its mount namespace.
pub struct SeenDirectory(File);

impl SeenDirectory {
    /// Opens a directory of this machine in the namespace of a process.
    ///
    /// # Errors
    /// If it does not exist in both namespaces.
    pub fn open(process: Pid, directory: &Path) -> std::io::Result<Self> {
        // An absolute link in the namespace of the process would lead out of it.
        let directory = directory.canonicalize()?;
        let below_root = directory.strip_prefix("/").unwrap_or(&directory);
        let root = Path::new("/proc").join(process.to_string()).join("root");
        File::open(root.join(below_root)).map(Self)
    }

    /// Returns the path of a file, which is valid as long as `self` exists. It is short enough for a socket.
    pub fn join(&self, name: &str) -> PathBuf {
        format!("/proc/{}/fd/{}/{name}", std::process::id(), self.0.as_raw_fd()).into()
    }
}

/// A running process, by its PID.
#[derive(Clone, Copy, Debug)]
pub struct Process(u32);

impl Process {
    pub fn new(pid: u32) -> Self {
        Self(pid)
    }

    /// Returns the CPU time of all threads in user and kernel mode, from the CPU clock of the
    /// process, which counts nanoseconds; `/proc/<pid>/stat` counts hundredths of a second.
    ///
    /// # Panics
    /// If the process has exited.
    pub fn cpu(self) -> Duration {
        let pid = Pid::from_raw(i32::try_from(self.0).expect("a process id"));
        let clock = ClockId::pid_cpu_clock_id(pid).expect("a running process has a clock");
        clock_gettime(clock).expect("a running process has a clock").into()
    }

    /// Returns the resident memory, in bytes (`VmRSS`).
    ///
    /// # Panics
    /// If the process has exited.
    pub fn rss(self) -> u64 {
        self.memory("VmRSS:")
    }

    /// Returns the peak resident memory, in bytes (`VmHWM`).
    ///
    /// # Panics
    /// If the process has exited.
    pub fn peak_rss(self) -> u64 {
        self.memory("VmHWM:")
    }

    /// Returns the resident pages that no file backs, in bytes (`RssAnon`). Private pages of files do not tell what
    /// a process needs: those of a program that was just installed count as written to.
    ///
    /// # Panics
    /// If the process has exited.
    pub fn anonymous(self) -> u64 {
        self.memory("RssAnon:")
    }

    /// Returns the resident pages of files, in bytes (`RssFile`).
    ///
    /// # Panics
    /// If the process has exited.
    pub fn resident_files(self) -> u64 {
        self.memory("RssFile:")
    }

    /// Returns this process's share of the resident pages of files, in bytes: a page that several processes
    /// map is divided by their number (`Pss_File`).
    ///
    /// # Panics
    /// If the process has exited or belongs to another user.
    pub fn share_of_files(self) -> u64 {
        field(&format!("/proc/{}/smaps_rollup", self.0), "Pss_File:")
    }

    /// Makes [`Process::peak_rss`] start again from the current memory.
    ///
    /// # Panics
    /// If the process has exited or belongs to another user.
    pub fn reset_peak_rss(self) {
        std::fs::write(format!("/proc/{}/clear_refs", self.0), "5").expect("a process of this user");
    }

    fn memory(self, name: &str) -> u64 {
        field(&format!("/proc/{}/status", self.0), name)
    }

    /// Returns the number of open sockets.
    ///
    /// # Panics
    /// If the process has exited.
    pub fn sockets(self) -> usize {
        let files = std::fs::read_dir(format!("/proc/{}/fd", self.0)).expect("a running process");
        let is_socket = |file: &std::path::PathBuf| {
            std::fs::read_link(file).is_ok_and(|target| target.to_string_lossy().starts_with("socket:"))
        };
        files.flatten().map(|file| file.path()).filter(is_socket).count()
    }
}

/// Returns a field of a file of `/proc` that counts memory, in bytes.
fn field(file: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(file).expect("a running process");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a process has memory");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number of KiB");
    kib << 10
}
