//! Counts of the agents of a fleet since its start.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::Instant;

/// Marks an agent without a stream, or without an acknowledgement on it.
const NEVER: u64 = u64::MAX;

/// Counts of all agents; times count from the start of the fleet.
#[derive(Debug)]
pub struct FleetStats {
    start: Instant,
    /// For each agent, the time of the first acknowledgement on its current stream, in
    /// microseconds.
    acknowledged: Vec<AtomicU64>,
    /// Total number of acknowledgements.
    acknowledgements: AtomicU64,
    attempts: Mutex<Vec<Duration>>,
    connections: Mutex<Vec<Duration>>,
    failure: Mutex<Option<String>>,
}

impl FleetStats {
    pub(super) fn new(agents: u32) -> Self {
        Self {
            start: Instant::now(),
            acknowledged: (0..agents).map(|_| AtomicU64::new(NEVER)).collect(),
            acknowledgements: AtomicU64::new(0),
            attempts: Mutex::default(),
            connections: Mutex::default(),
            failure: Mutex::default(),
        }
    }

    /// Returns the time since the start of the fleet.
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Returns the number of acknowledged reports.
    pub fn acknowledgements(&self) -> u64 {
        self.acknowledgements.load(Ordering::Relaxed)
    }

    /// Returns the time of the first acknowledgement on the current stream of each agent; agents
    /// without one are left out.
    pub fn registered(&self) -> Vec<Duration> {
        let times = self.acknowledged.iter().map(|time| time.load(Ordering::Relaxed));
        times.filter(|time| *time != NEVER).map(Duration::from_micros).collect()
    }

    /// Returns the times of the connection attempts since the last call.
    pub fn take_attempts(&self) -> Vec<Duration> {
        std::mem::take(&mut *locked(&self.attempts))
    }

    /// Returns the times at which connections were established, including TLS, since the last call.
    pub fn take_connections(&self) -> Vec<Duration> {
        std::mem::take(&mut *locked(&self.connections))
    }

    /// Returns why the last stream ended or could not be opened.
    pub fn failure(&self) -> Option<String> {
        locked(&self.failure).clone()
    }

    pub(super) fn attempt(&self) {
        locked(&self.attempts).push(self.now());
    }

    pub(super) fn connected(&self) {
        locked(&self.connections).push(self.now());
    }

    pub(super) fn acknowledge(&self, agent: u32) {
        self.acknowledgements.fetch_add(1, Ordering::Relaxed);
        let now = u64::try_from(self.now().as_micros()).unwrap_or(NEVER - 1);
        let first = &self.acknowledged[agent as usize];
        // Only the agent itself writes to its element.
        if first.load(Ordering::Relaxed) == NEVER {
            first.store(now, Ordering::Relaxed);
        }
    }

    pub(super) fn lost(&self, agent: u32, why: String) {
        self.acknowledged[agent as usize].store(NEVER, Ordering::Relaxed);
        *locked(&self.failure) = Some(why);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("the mutex is not poisoned")
}
