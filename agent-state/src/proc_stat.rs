//! Facts about a process from `/proc/PID/stat`, which every user may read.

use std::fs;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcStat {
    state: char,
    /// Id of the parent.
    pub parent: i32,
    /// Id of the process group.
    pub group: i32,
    /// Start time in clock ticks since the boot; it stays the same when the process executes a program.
    pub start_time: u64,
}

impl ProcStat {
    /// Returns `None` if there is no such process.
    pub fn of(pid: i32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Returns all processes with their ids.
    pub fn all() -> impl Iterator<Item = (i32, Self)> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter_map(|pid| Some((pid, Self::of(pid)?)))
    }

    /// Returns true if the process has exited.
    pub fn is_zombie(self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    fn parse(stat: &str) -> Option<Self> {
        // The name of the program, in parentheses, may contain spaces and parentheses. State is field 3,
        // parent 4, group 5, and start time 22.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        Some(Self {
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            start_time: fields.get(19)?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests;
