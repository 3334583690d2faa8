//! Limits the concurrent work for each source, so that the work for one source delays that for
//! others only a little.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use pacing::SourceMap;
use tokio::sync::Semaphore;

use crate::source::Source;

#[derive(Clone, Debug)]
pub struct SourcePermits {
    permits: usize,
    sources: Arc<Mutex<SourceMap<Option<Source>, Weak<Semaphore>>>>,
}

impl SourcePermits {
    /// `permits` is the concurrent work for each source.
    pub fn new(permits: usize) -> Self {
        Self { permits, sources: Arc::default() }
    }

    /// Returns the permits of a source.
    pub fn of(&self, source: Option<Source>) -> Arc<Semaphore> {
        let mut sources = self.sources.lock().expect("nothing panics while it holds this lock");
        let expires = |permits: &Weak<_>| (permits.strong_count() == 0).then_some(Duration::ZERO);
        let known = sources.get_or_insert(source, Duration::ZERO, expires, Weak::new());
        known.upgrade().unwrap_or_else(|| {
            let permits = Arc::new(Semaphore::new(self.permits));
            *known = Arc::downgrade(&permits);
            permits
        })
    }
}

#[cfg(test)]
mod tests;
