//! The places for probes in flight of one prober on one worker.

use std::cell::{Cell, RefCell};

/// The places that any client may take.
const SHARED: u32 = 8;
/// The places of each client beyond those, and of all clients together.
const PER_CLIENT: u32 = 2;
const BEYOND: u32 = 248;

/// The places of a prober. When the shared ones are taken, each client has a few more, so clients that
/// probe too often do not take those of kubelet.
#[derive(Debug, Default)]
pub struct Places {
    shared: Cell<u32>,
    /// The address of each client with places beyond the shared ones, and their number.
    clients: RefCell<Vec<(Vec<u8>, u32)>>,
}

/// A place that is taken until [`Places::free`] gets it.
#[derive(Debug)]
pub enum Place {
    Shared,
    /// One of the places of the client with this address.
    Client(Vec<u8>),
}

impl Places {
    /// Takes a place. Returns `None` if there is none for this client. `client` returns its address,
    /// without the port; it is called only if the shared places are taken.
    pub fn take(&self, client: impl FnOnce() -> Vec<u8>) -> Option<Place> {
        if self.shared.get() < SHARED {
            self.shared.set(self.shared.get().saturating_add(1));
            return Some(Place::Shared);
        }
        self.take_of_client(client())
    }

    fn take_of_client(&self, client: Vec<u8>) -> Option<Place> {
        let mut clients = self.clients.try_borrow_mut().ok()?;
        let taken: u32 = clients.iter().map(|(_, count)| count).sum();
        if taken >= BEYOND {
            return None;
        }
        match clients.iter_mut().find(|(found, _)| *found == client) {
            Some((_, count)) if *count >= PER_CLIENT => return None,
            Some((_, count)) => *count = count.saturating_add(1),
            None => clients.push((client.clone(), 1)),
        }
        Some(Place::Client(client))
    }

    /// Frees the place of a probe that has ended.
    pub fn free(&self, place: &Place) {
        let Place::Client(client) = place else {
            self.shared.set(self.shared.get().saturating_sub(1));
            return;
        };
        let Ok(mut clients) = self.clients.try_borrow_mut() else { return };
        clients.retain_mut(|(found, count)| {
            if found == client {
                *count = count.saturating_sub(1);
            }
            *count > 0
        });
    }
}

#[cfg(test)]
mod tests;
