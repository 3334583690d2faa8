//! The places of scrapes in progress. Clients share them: if all are taken, a client with few scrapes
//! gets the place of the client with the most, so slow readers cannot take those of other addresses.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use serving::source::Source;
use tokio_util::sync::CancellationToken;

/// Maximum number of scrapes in progress: far fewer than the connections of the local server, so that
/// it still accepts `drain`.
pub(super) const SCRAPES: usize = 24;

#[derive(Clone, Debug, Default)]
pub(super) struct Places(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    /// Keyed by sequence number and therefore ordered by age.
    scrapes: BTreeMap<u64, Scrape>,
}

#[derive(Debug)]
struct Scrape {
    /// `None` for clients that Envoy does not name.
    client: Option<Source>,
    superseded: CancellationToken,
}

/// The place of a scrape, which is free when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Places,
    number: u64,
    superseded: CancellationToken,
}

impl Places {
    /// Takes a place. `None` means that all are taken, and that no other client has at least two more
    /// of them than this one.
    pub(super) fn take(&self, client: Option<Source>) -> Option<Place> {
        let (number, superseded) = self.lock().take(client)?;
        Some(Place { places: self.clone(), number, superseded })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().expect("nothing panics while it holds this lock")
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.lock().scrapes.len()
    }
}

impl Taken {
    fn take(&mut self, client: Option<Source>) -> Option<(u64, CancellationToken)> {
        if self.scrapes.len() >= SCRAPES {
            let number = self.to_supersede(client)?;
            if let Some(scrape) = self.scrapes.remove(&number) {
                scrape.superseded.cancel();
            }
        }
        let (number, superseded) = (self.next, CancellationToken::new());
        self.next += 1;
        self.scrapes.insert(number, Scrape { client, superseded: superseded.clone() });
        Some((number, superseded))
    }

    /// Returns the oldest scrape of the client with the most scrapes, unless `client` would then have
    /// more of them than that client.
    fn to_supersede(&self, client: Option<Source>) -> Option<u64> {
        let count = |client| self.scrapes.values().filter(|scrape| scrape.client == client).count();
        let scrapes = self.scrapes.iter().map(|(number, scrape)| (count(scrape.client), Reverse(*number)));
        let (most, Reverse(oldest)) = scrapes.max()?;
        (most > count(client) + 1).then_some(oldest)
    }
}

impl Place {
    /// Waits until another client has got this place.
    pub(super) async fn superseded(&self) {
        self.superseded.cancelled().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().scrapes.remove(&self.number);
    }
}

#[cfg(test)]
mod tests;
