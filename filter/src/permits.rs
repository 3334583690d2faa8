//! The permits for probes in flight of one prober on one worker.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The permits that any client may take.
const SHARED: u32 = 8;
/// The permits of each client beyond those, and of all clients together.
const PER_CLIENT: u32 = 2;
const BEYOND: u32 = 248;

/// The permits of a prober. When the shared ones are taken, each client has a few more, so clients that
/// probe too often do not take those of kubelet.
#[derive(Debug, Default)]
pub struct Permits {
    shared: Cell<u32>,
    /// The address of each client with permits beyond the shared ones, and their number.
    clients: RefCell<Vec<(Vec<u8>, u32)>>,
}

/// A permit for a probe in flight. Dropping it frees it.
#[derive(Debug)]
pub struct Permit {
    permits: Rc<Permits>,
    /// The address of the client; `None` for a shared permit.
    client: Option<Vec<u8>>,
}

impl Permits {
    /// Takes a permit. Returns `None` if there is none for this client. `client` returns its address,
    /// without the port; it is called only if the shared permits are taken.
    pub fn take(self: &Rc<Self>, client: impl FnOnce() -> Vec<u8>) -> Option<Permit> {
        let client = if self.shared.get() < SHARED {
            self.shared.set(self.shared.get().saturating_add(1));
            None
        } else {
            Some(self.take_of_client(client())?)
        };
        Some(Permit { permits: Rc::clone(self), client })
    }

    fn take_of_client(&self, client: Vec<u8>) -> Option<Vec<u8>> {
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
        Some(client)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Permits { shared, clients } = &*self.permits;
        let Some(client) = &self.client else {
            shared.set(shared.get().saturating_sub(1));
            return;
        };
        let Ok(mut clients) = clients.try_borrow_mut() else { return };
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
