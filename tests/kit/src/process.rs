//! What a process of this machine costs: time on the processors, memory, sockets.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

/// A running process.
#[derive(Clone, Copy, Debug)]
pub struct Process(u32);

impl Process {
    /// The process with this id.
    pub fn new(pid: u32) -> Self {
        Self(pid)
    }

    /// The time that all its threads have spent on a processor, in user and kernel mode, from the process's own
    /// clock: nanoseconds, where `/proc/<pid>/stat` counts hundredths of a second.
    ///
    /// # Panics
    /// When the process has ended.
    pub fn cpu(self) -> Duration {
        let pid = Pid::from_raw(i32::try_from(self.0).expect("a process id"));
        let clock = ClockId::pid_cpu_clock_id(pid).expect("a running process has a clock");
        clock_gettime(clock).expect("a running process has a clock").into()
    }

    /// Its resident memory, in bytes (`VmRSS`).
    ///
    /// # Panics
    /// When the process has ended.
    pub fn rss(self) -> u64 {
        self.memory("VmRSS:")
    }

    /// The most resident memory that it ever had, in bytes (`VmHWM`).
    ///
    /// # Panics
    /// When the process has ended.
    pub fn peak_rss(self) -> u64 {
        self.memory("VmHWM:")
    }

    fn memory(self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0)).expect("a running process");
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a process has memory");
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number of KiB");
        kib << 10
    }

    /// How many sockets it holds.
    ///
    /// # Panics
    /// When the process has ended.
    pub fn sockets(self) -> usize {
        let files = std::fs::read_dir(format!("/proc/{}/fd", self.0)).expect("a running process");
        let is_socket = |file: &std::path::PathBuf| {
            std::fs::read_link(file).is_ok_and(|target| target.to_string_lossy().starts_with("socket:"))
        };
        files.flatten().map(|file| file.path()).filter(is_socket).count()
    }
}
