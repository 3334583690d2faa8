//! Resource usage of this process as reported by the kernel.

use std::fs;

use nix::time::{ClockId, clock_gettime};

/// Current usage; a value that cannot be read is 0.
pub(super) struct Usage {
    pub(super) resident_memory_bytes: i64,
    pub(super) cpu_seconds: f64,
    pub(super) open_fds: i64,
}

impl Usage {
    pub(super) fn of_this() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib: i64 = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0);
        let files = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        let cpu = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map(std::time::Duration::from);
        Self {
            resident_memory_bytes: kib << 10,
            cpu_seconds: cpu.map_or(0.0, |cpu| cpu.as_secs_f64()),
            open_fds: i64::try_from(files).unwrap_or(i64::MAX),
        }
    }
}
