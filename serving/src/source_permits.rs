//! Limits the concurrent work for each source, so that the work for one source delays that for
//! others only a little.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use tokio::sync::Semaphore;

use crate::source::Source;

/// Number of sources kept in memory before those without work are removed.
const MAX_SOURCES: usize = 1024;

#[derive(Clone, Debug)]
pub struct SourcePermits {
    permits: usize,
    sources: Arc<Mutex<HashMap<Option<Source>, Weak<Semaphore>>>>,
}

impl SourcePermits {
    /// `permits` is the concurrent work for each source.
    pub fn new(permits: usize) -> Self {
        Self { permits, sources: Arc::default() }
    }

    /// Returns the permits of a source.
    pub fn of(&self, source: Option<Source>) -> Arc<Semaphore> {
        let mut sources = self.sources.lock().expect("nothing panics while it holds this lock");
        if let Some(permits) = sources.get(&source).and_then(Weak::upgrade) {
            return permits;
        }
        if sources.len() >= MAX_SOURCES {
            sources.retain(|_, permits| permits.strong_count() > 0);
        }
        let permits = Arc::new(Semaphore::new(self.permits));
        sources.insert(source, Arc::downgrade(&permits));
        permits
    }
}

#[cfg(test)]
mod tests;
