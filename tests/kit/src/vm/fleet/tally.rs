//! What the agents of a fleet went through, since its start.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::Instant;

/// No stream, or nothing acknowledged on it yet.
const NEVER: u64 = u64::MAX;

/// Times are since the fleet's start.
#[derive(Debug)]
pub struct Tally {
    start: Instant,
    /// Per agent, the first acknowledgement on the stream of this moment, in microseconds.
    acknowledged: Vec<AtomicU64>,
    /// Acknowledgements in all.
    acknowledgements: AtomicU64,
    attempts: Mutex<Vec<Duration>>,
    connections: Mutex<Vec<Duration>>,
    failure: Mutex<Option<String>>,
}

impl Tally {
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

    /// How long the fleet is there.
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// How many reports were acknowledged.
    pub fn acknowledgements(&self) -> u64 {
        self.acknowledgements.load(Ordering::Relaxed)
    }

    /// When the stream of each agent had its first report acknowledged; agents without are left out.
    pub fn registered(&self) -> Vec<Duration> {
        let times = self.acknowledged.iter().map(|time| time.load(Ordering::Relaxed));
        times.filter(|time| *time != NEVER).map(Duration::from_micros).collect()
    }

    /// When somebody dialled, since the last call.
    pub fn take_attempts(&self) -> Vec<Duration> {
        std::mem::take(&mut *locked(&self.attempts))
    }

    /// When the server had taken somebody in, TLS and all, since the last call.
    pub fn take_connections(&self) -> Vec<Duration> {
        std::mem::take(&mut *locked(&self.connections))
    }

    /// Why the last stream ended, or did not come about.
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
        // Only the agent itself writes here.
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
    mutex.lock().expect("no holder panics")
}
