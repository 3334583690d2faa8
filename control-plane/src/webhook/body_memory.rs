//! Limits the memory for request bodies. When it is exhausted, the source that holds the most loses
//! its oldest body that is not under review.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use serving::source::Source;
use tokio_util::sync::CancellationToken;

/// Memory shared by all bodies.
#[derive(Clone, Debug)]
pub(super) struct BodyMemory(Arc<Mutex<Bodies>>);

#[derive(Debug)]
struct Bodies {
    /// In bytes.
    limit: usize,
    held: usize,
    next: u64,
    /// Keyed by sequence number and therefore ordered by age.
    bodies: BTreeMap<u64, HeldBody>,
}

#[derive(Debug)]
struct HeldBody {
    source: Option<Source>,
    bytes: usize,
    /// Cancelled when the body must be discarded.
    discard: CancellationToken,
    under_review: bool,
}

/// The body has been discarded, or there is no memory for it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Exhausted;

/// Memory of one body; it is released on drop.
#[derive(Debug)]
pub(super) struct BodyPermit {
    memory: BodyMemory,
    number: u64,
    discard: CancellationToken,
}

impl BodyMemory {
    /// `limit` is in bytes.
    pub(super) fn new(limit: usize) -> Self {
        let bodies = Bodies { limit, held: 0, next: 0, bodies: BTreeMap::new() };
        Self(Arc::new(Mutex::new(bodies)))
    }

    fn lock(&self) -> MutexGuard<'_, Bodies> {
        self.0.lock().expect("nothing panics while it holds this lock")
    }

    /// Registers an empty body.
    pub(super) fn open(&self, source: Option<Source>) -> BodyPermit {
        let mut bodies = self.lock();
        let number = bodies.next;
        bodies.next += 1;
        let discard = CancellationToken::new();
        let body = HeldBody { source, bytes: 0, discard: discard.clone(), under_review: false };
        bodies.bodies.insert(number, body);
        BodyPermit { memory: self.clone(), number, discard }
    }
}

impl BodyPermit {
    /// Adds received bytes, and discards bodies of other connections if necessary.
    pub(super) fn grow(&self, bytes: usize) -> Result<(), Exhausted> {
        self.memory.lock().grow(self.number, bytes)
    }

    /// Waits until this body must be discarded.
    pub(super) async fn discarded(&self) {
        self.discard.cancelled().await;
    }

    /// Excludes this body from being discarded, since its review begins.
    pub(super) fn begin_review(&self) -> Result<(), Exhausted> {
        let mut bodies = self.memory.lock();
        let body = bodies.bodies.get_mut(&self.number).ok_or(Exhausted)?;
        body.under_review = true;
        Ok(())
    }
}

impl Drop for BodyPermit {
    fn drop(&mut self) {
        self.memory.lock().remove(self.number);
    }
}

impl Bodies {
    fn grow(&mut self, number: u64, bytes: usize) -> Result<(), Exhausted> {
        let body = self.bodies.get_mut(&number).ok_or(Exhausted)?;
        body.bytes += bytes;
        self.held += bytes;
        while self.held > self.limit {
            let victim = self.victim().ok_or(Exhausted)?;
            self.remove(victim);
            if victim == number {
                return Err(Exhausted);
            }
        }
        Ok(())
    }

    /// Returns the oldest body that may be discarded, of the source that holds the most memory.
    fn victim(&self) -> Option<u64> {
        let mut sources: HashMap<Option<Source>, usize> = HashMap::new();
        for body in self.bodies.values() {
            *sources.entry(body.source).or_default() += body.bytes;
        }
        let may_be_discarded = self.bodies.iter().filter(|(_, body)| !body.under_review && body.bytes > 0);
        let victim =
            may_be_discarded.min_by_key(|(number, body)| (usize::MAX - sources[&body.source], **number));
        victim.map(|(number, _)| *number)
    }

    fn remove(&mut self, number: u64) {
        if let Some(body) = self.bodies.remove(&number) {
            self.held -= body.bytes;
            body.discard.cancel();
        }
    }
}

#[cfg(test)]
mod tests;
