//! The CPU time that the machine and this benchmark have used, from `/proc`.

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;

/// The kernel counts CPU time in `/proc` in hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;

/// The counters at a point in time.
#[derive(Clone, Debug)]
pub(super) struct CpuTime {
    at: Instant,
    machine: Machine,
    /// Ticks of this process and its descendants, also of those that have exited.
    own: u64,
}

impl CpuTime {
    /// Reads the counters.
    ///
    /// # Panics
    /// If `/proc` cannot be read.
    pub(super) fn now() -> Self {
        let stat = std::fs::read_to_string("/proc/stat").expect("/proc is mounted");
        let machine = Machine::parse(&stat).expect("counters of all CPUs");
        Self { at: Instant::now(), machine, own: tree(&processes(), std::process::id()) }
    }

    /// Returns the share of all CPUs, 0 to 1, that other processes and the hypervisor have used
    /// since an earlier point in time.
    pub(super) fn others_since(&self, earlier: &Self) -> f64 {
        let ticks = self.machine.others_since(&earlier.machine, self.own.saturating_sub(earlier.own));
        let seconds = (self.at - earlier.at).as_secs_f64();
        f64::from(ticks) / (seconds * TICKS_PER_SECOND * f64::from(self.machine.cpus))
    }
}

/// The counters of the whole machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Machine {
    pub(super) cpus: u32,
    /// Ticks in processes and in the kernel on their behalf, without interrupts, which no process
    /// is charged for.
    pub(super) busy: u64,
    /// Ticks that the hypervisor gave to other machines.
    pub(super) stolen: u64,
}

impl Machine {
    /// Parses `/proc/stat`.
    pub(super) fn parse(stat: &str) -> Option<Self> {
        let mut lines = stat.lines();
        let all = lines.next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = all.split_whitespace().map_while(|field| field.parse().ok()).collect();
        let &[user, nice, system, _idle, _iowait, _irq, _softirq, stolen, ..] = ticks.as_slice() else {
            return None;
        };
        let cpus = lines.take_while(|line| line.starts_with("cpu")).count();
        Some(Self { cpus: u32::try_from(cpus).ok()?, busy: user + nice + system, stolen })
    }

    /// Returns the ticks since `earlier` that were not among the `own` ones.
    pub(super) fn others_since(&self, earlier: &Self, own: u64) -> u32 {
        let busy = self.busy.saturating_sub(earlier.busy).saturating_sub(own);
        u32::try_from(busy + self.stolen.saturating_sub(earlier.stolen)).unwrap_or(u32::MAX)
    }
}

/// A process in `/proc/<pid>/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessStat {
    pub(super) parent: u32,
    /// Ticks of the process and of its children that have exited.
    pub(super) ticks: u64,
}

impl ProcessStat {
    pub(super) fn parse(stat: &str) -> Option<Self> {
        // The name of the program, in parentheses, may contain spaces.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = fields.get(11..15)?.iter().map(|field| field.parse::<u64>());
        Some(Self { parent: fields.get(1)?.parse().ok()?, ticks: ticks.sum::<Result<_, _>>().ok()? })
    }
}

/// Returns the sum over a process and its descendants.
pub(super) fn tree(processes: &BTreeMap<u32, ProcessStat>, root: u32) -> u64 {
    let mut found = BTreeSet::from([root]);
    loop {
        let is_new =
            |(pid, process): &(&u32, &ProcessStat)| found.contains(&process.parent) && !found.contains(*pid);
        let children: Vec<u32> = processes.iter().filter(is_new).map(|(pid, _)| *pid).collect();
        if children.is_empty() {
            return found.iter().filter_map(|pid| processes.get(pid)).map(|process| process.ticks).sum();
        }
        found.extend(children);
    }
}

/// Reads all processes; those that exit meanwhile are left out.
fn processes() -> BTreeMap<u32, ProcessStat> {
    let entries = std::fs::read_dir("/proc").expect("/proc is mounted").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some((pid, ProcessStat::parse(&stat)?))
    })
    .collect()
}
