//! What an attack costs the attacked processes: connections, memory, CPU and lines of log.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use kit::process::Process;
use nix::unistd::Pid;
use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;

use crate::resources::Usage;

/// Time between two samples.
const PERIOD: Duration = Duration::from_millis(100);
/// The bar for the memory of a process: how much it may grow by one source.
const GROWTH_BAR: u64 = 16 << 20;
/// The bar for the log that one source causes in a minute, in bytes.
const LOG_BAR: u64 = 64 << 10;
const MINUTE: f64 = 60.0;

/// Processes that are attacked together, and share a log and a memory limit.
#[derive(Debug)]
pub struct Attacked {
    /// The name and the process ID of each.
    pub processes: Vec<(&'static str, u32)>,
    pub log: PathBuf,
    /// The documented memory limit of their container, in bytes.
    pub limit: u64,
    /// The usage of each process before its first attack. Memory that an earlier attack took, and that
    /// was not returned, counts as growth too.
    baseline: Mutex<Option<Vec<Usage>>>,
}

/// What an attack cost one process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessCost {
    pub name: &'static str,
    /// Anonymous memory before the first attack, in bytes.
    pub before: u64,
    /// The most of it during this attack.
    pub most: u64,
    /// The most descriptors that were open besides those before the first attack.
    pub connections: u64,
    /// CPU time during this attack.
    pub cpu: Duration,
    /// True if the process has exited.
    pub has_exited: bool,
}

impl ProcessCost {
    pub fn growth(&self) -> u64 {
        self.most.saturating_sub(self.before)
    }
}

/// What an attack cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cost {
    pub processes: Vec<ProcessCost>,
    /// Bytes that were logged during the attack.
    pub log: u64,
    /// The most memory of all processes at the same time, in bytes.
    pub most: u64,
    pub limit: u64,
    /// The number of sources, see [`crate::network::source`].
    pub sources: u64,
    /// The length of the attack.
    pub length: Duration,
}

impl Cost {
    /// Returns the bytes of log in a minute; in less than a minute, all.
    pub fn log_per_minute(&self) -> u64 {
        let minutes = (self.length.as_secs_f64() / MINUTE).max(1.0);
        (self.log as f64 / minutes) as u64
    }

    /// Returns the share of one core that all processes used, in percent.
    pub fn cpu_percent(&self) -> f64 {
        let cpu: Duration = self.processes.iter().map(|process| process.cpu).sum();
        100.0 * cpu.as_secs_f64() / self.length.as_secs_f64().max(f64::EPSILON)
    }

    /// Returns what the attacked processes held at most, besides what they hold without an attack.
    pub fn connections(&self) -> u64 {
        self.processes.iter().map(|process| process.connections).max().unwrap_or_default()
    }

    /// Returns the growth of the process that has grown the most.
    pub fn growth(&self) -> u64 {
        self.processes.iter().map(ProcessCost::growth).max().unwrap_or_default()
    }

    /// Returns the bars that do not hold.
    pub fn broken(&self) -> Vec<String> {
        let mut broken = Vec::new();
        let (growth, log) = (GROWTH_BAR * self.sources.max(1), LOG_BAR * self.sources.max(1));
        for process in &self.processes {
            let name = process.name;
            if process.has_exited {
                broken.push(format!("{name} has exited"));
            }
            if process.growth() > growth {
                broken.push(format!(
                    "{name} grew by {} MiB, at most {}",
                    process.growth() >> 20,
                    growth >> 20
                ));
            }
        }
        if self.most > self.limit {
            broken.push(format!("{} MiB, the limit is {}", self.most >> 20, self.limit >> 20));
        }
        if self.log_per_minute() > log {
            broken.push(format!(
                "{} KiB of log in a minute, at most {}",
                self.log_per_minute() >> 10,
                log >> 10
            ));
        }
        broken
    }
}

impl Attacked {
    pub fn new(processes: Vec<(&'static str, u32)>, log: PathBuf, limit: u64) -> Self {
        Self { processes, log, limit, baseline: Mutex::default() }
    }

    fn usages(&self) -> Vec<Usage> {
        self.processes.iter().map(|(_, pid)| Usage::of(*pid).unwrap_or_default()).collect()
    }

    fn log_length(&self) -> u64 {
        std::fs::metadata(&self.log).map_or(0, |file| file.len())
    }

    fn cpu(&self) -> Vec<Option<Duration>> {
        let is_alive =
            |pid: &u32| i32::try_from(*pid).is_ok_and(|pid| kit::process::is_alive(Pid::from_raw(pid)));
        self.processes.iter().map(|(_, pid)| is_alive(pid).then(|| Process::new(*pid).cpu())).collect()
    }
}

/// Measures the cost of an attack from its start to its end.
pub struct Meter<'a> {
    attacked: &'a Attacked,
    start: Instant,
    log: u64,
    cpu: Vec<Option<Duration>>,
    baseline: Vec<Usage>,
    most: Arc<Mutex<Most>>,
    _sampling: AbortOnDropHandle<()>,
}

#[derive(Debug, Default)]
struct Most {
    /// The most of each process.
    each: Vec<Usage>,
    /// The most memory of all.
    memory: u64,
}

impl<'a> Meter<'a> {
    /// Starts to sample, on this runtime.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(attacked: &'a Attacked) -> Self {
        let baseline = locked(&attacked.baseline).get_or_insert_with(|| attacked.usages()).clone();
        let most = Arc::new(Mutex::new(Most { each: vec![Usage::default(); baseline.len()], memory: 0 }));
        let (shared, pids) = (Arc::clone(&most), attacked.processes.clone());
        let sampling = tokio::spawn(async move {
            loop {
                let now: Vec<Usage> =
                    pids.iter().map(|(_, pid)| Usage::of(*pid).unwrap_or_default()).collect();
                locked(&shared).add(&now);
                sleep(PERIOD).await;
            }
        });
        Self {
            attacked,
            start: Instant::now(),
            log: attacked.log_length(),
            cpu: attacked.cpu(),
            baseline,
            most,
            _sampling: AbortOnDropHandle::new(sampling),
        }
    }

    /// Returns the cost so far.
    ///
    /// # Panics
    /// If the sampling task has panicked.
    pub fn cost(&self) -> Cost {
        let mut most = locked(&self.most);
        most.add(&self.attacked.usages());
        let ends = self.attacked.cpu();
        let processes = self.attacked.processes.iter().enumerate().map(|(number, (name, _))| {
            let (before, most) = (self.baseline[number], most.each[number]);
            let cpu = ends[number].zip(self.cpu[number]).map(|(end, start)| end.saturating_sub(start));
            ProcessCost {
                name,
                before: before.memory,
                most: most.memory,
                connections: most.descriptors.saturating_sub(before.descriptors),
                cpu: cpu.unwrap_or_default(),
                has_exited: cpu.is_none(),
            }
        });
        Cost {
            processes: processes.collect(),
            log: self.attacked.log_length().saturating_sub(self.log),
            most: most.memory,
            limit: self.attacked.limit,
            sources: 0,
            length: self.start.elapsed(),
        }
    }
}

impl Most {
    fn add(&mut self, now: &[Usage]) {
        for (most, now) in self.each.iter_mut().zip(now) {
            most.memory = most.memory.max(now.memory);
            most.descriptors = most.descriptors.max(now.descriptors);
        }
        self.memory = self.memory.max(now.iter().map(|usage| usage.memory).sum());
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("the mutex is not poisoned")
}

#[cfg(test)]
mod tests;
