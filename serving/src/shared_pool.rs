//! A [`FairPool`] that tasks share: each has a place, and learns when it is evicted.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use pacing::{FairPool, Full};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::source::Source;

/// The key `K` is `None` for clients without a source, which count as one.
#[derive(Clone, Debug)]
pub struct SharedPool<K = Option<Source>> {
    start: Instant,
    pool: Arc<Mutex<FairPool<K, DropGuard>>>,
}

/// A place in a pool; it is freed on drop.
#[derive(Debug)]
pub struct Place<K = Option<Source>> {
    pool: SharedPool<K>,
    number: u64,
    evicted: CancellationToken,
}

impl<K> SharedPool<K> {
    /// See [`FairPool::new`].
    pub fn new(total: usize, share: usize) -> Self {
        Self { start: Instant::now(), pool: Arc::new(Mutex::new(FairPool::new(total, share))) }
    }

    fn lock(&self) -> MutexGuard<'_, FairPool<K, DropGuard>> {
        self.pool.lock().expect("nothing panics while it holds this lock")
    }

    /// Returns the amount of all places.
    pub fn used(&self) -> usize {
        self.lock().used()
    }

    /// See [`FairPool::open`].
    pub fn open(&self, source: K) -> Place<K> {
        let evicted = CancellationToken::new();
        let number = self.lock().open(source, evicted.clone().drop_guard());
        Place { pool: self.clone_pool(), number, evicted }
    }

    fn clone_pool(&self) -> Self {
        Self { start: self.start, pool: self.pool.clone() }
    }
}

impl<K: Ord> SharedPool<K> {
    /// See [`FairPool::admit`].
    pub fn admit(&self, source: K) -> Result<Place<K>, Full> {
        let evicted = CancellationToken::new();
        let number = self.lock().admit(source, self.start.elapsed(), evicted.clone().drop_guard())?;
        Ok(Place { pool: self.clone_pool(), number, evicted })
    }

    /// See [`FairPool::admit_fairly`].
    pub fn admit_fairly(&self, source: K) -> Result<Place<K>, Full> {
        let evicted = CancellationToken::new();
        let number = self.lock().admit_fairly(source, self.start.elapsed(), evicted.clone().drop_guard())?;
        Ok(Place { pool: self.clone_pool(), number, evicted })
    }
}

impl<K: Ord> Place<K> {
    /// See [`FairPool::grow`].
    pub fn grow(&self, amount: usize) -> Result<(), Full> {
        self.pool.lock().grow(self.number, amount, self.pool.start.elapsed())
    }
}

impl<K> Place<K> {
    /// Waits until this place is evicted.
    pub async fn evicted(&self) {
        self.evicted.cancelled().await;
    }

    /// Excludes this place from eviction. Returns false if it has been evicted.
    pub fn set_busy(&self) -> bool {
        self.pool.lock().set_idle(self.number, None)
    }

    /// Makes this place evictable after a time.
    pub fn set_idle(&self, after: Duration) {
        self.pool.lock().set_idle(self.number, Some(self.pool.start.elapsed() + after));
    }

    pub fn evict(&self) {
        self.pool.lock().remove(self.number);
    }

    /// Frees this place without evicting its holder.
    pub fn release(&self) {
        if let Some(guard) = self.pool.lock().remove(self.number) {
            guard.disarm();
        }
    }
}

impl<K> Drop for Place<K> {
    fn drop(&mut self) {
        self.evict();
    }
}
