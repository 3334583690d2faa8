//! A [`FairPool`] that tasks share: each has a slot, and learns when it is evicted.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use pacing::{FairPool, Full};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::source::Source;

/// Clients without a source count as one.
type Pool = FairPool<Option<Source>, DropGuard>;

#[derive(Clone, Debug)]
pub struct SharedPool {
    start: Instant,
    pool: Arc<Mutex<Pool>>,
}

/// A slot in a pool; it is freed on drop.
#[derive(Debug)]
pub struct Slot {
    pool: SharedPool,
    number: u64,
    evicted: CancellationToken,
}

impl SharedPool {
    /// See [`FairPool::new`].
    pub fn new(total: usize, share: usize) -> Self {
        Self { start: Instant::now(), pool: Arc::new(Mutex::new(FairPool::new(total, share))) }
    }

    fn lock(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().expect("nothing panics while it holds this lock")
    }

    /// Returns the amount of all slots.
    pub fn used(&self) -> usize {
        self.lock().used()
    }

    /// See [`FairPool::open`].
    pub fn open(&self, source: Option<Source>) -> Slot {
        let Ok(slot) = self.claim(|pool, _, guard| Ok::<_, Infallible>(pool.open(source, guard)));
        slot
    }

    /// See [`FairPool::admit`].
    pub fn admit(&self, source: Option<Source>) -> Result<Slot, Full> {
        self.claim(|pool, now, guard| pool.admit(source, now, guard))
    }

    /// See [`FairPool::admit_fairly`].
    pub fn admit_fairly(&self, source: Option<Source>) -> Result<Slot, Full> {
        self.claim(|pool, now, guard| pool.admit_fairly(source, now, guard))
    }

    fn claim<E>(
        &self,
        add: impl FnOnce(&mut Pool, Duration, DropGuard) -> Result<u64, E>,
    ) -> Result<Slot, E> {
        let evicted = CancellationToken::new();
        let number = add(&mut self.lock(), self.start.elapsed(), evicted.clone().drop_guard())?;
        Ok(Slot { pool: self.clone(), number, evicted })
    }
}

impl Slot {
    /// See [`FairPool::grow`].
    pub fn grow(&self, amount: usize) -> Result<(), Full> {
        self.pool.lock().grow(self.number, amount, self.pool.start.elapsed())
    }

    /// Waits until this slot is evicted.
    pub async fn evicted(&self) {
        self.evicted.cancelled().await;
    }

    /// Marks this slot as busy: it is evicted only for fairness, after all others of its source, and
    /// never for one that grows. Returns false if it has been evicted.
    pub fn set_busy(&self) -> bool {
        self.pool.lock().set_idle(self.number, None)
    }

    /// Marks this slot as idle after a time.
    pub fn set_idle(&self, after: Duration) {
        self.pool.lock().set_idle(self.number, Some(self.pool.start.elapsed() + after));
    }

    pub fn evict(&self) {
        self.pool.lock().remove(self.number);
    }

    /// Frees this slot without evicting its holder.
    pub fn release(&self) {
        if let Some(guard) = self.pool.lock().remove(self.number) {
            guard.disarm();
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.evict();
    }
}

#[cfg(test)]
mod tests;
