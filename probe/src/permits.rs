//! How many probes of one prober may be in flight.

/// The permits that any client may take.
const SHARED: u32 = 8;
/// The permits of each client beyond those, and of all clients together.
const PER_CLIENT: u32 = 2;
const BEYOND: u32 = 248;

/// The permits of a prober. When the shared ones are taken, each client has a few more, so clients that
/// probe too often do not take those of kubelet.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Permits {
    shared: u32,
    /// The address of each client with permits beyond the shared ones, and their number.
    clients: Vec<(Vec<u8>, u32)>,
}

/// A permit for a probe in flight, which must be [returned](Permits::give_back).
#[derive(Debug, PartialEq, Eq)]
pub struct Permit {
    /// The address of the client; `None` for a shared permit.
    client: Option<Vec<u8>>,
}

impl Permits {
    /// Takes a permit. Returns `None` if there is none for this client. `client` returns its address,
    /// without the port; it is called only if the shared permits are taken.
    pub fn take(&mut self, client: impl FnOnce() -> Vec<u8>) -> Option<Permit> {
        let client = if self.shared < SHARED {
            self.shared = self.shared.saturating_add(1);
            None
        } else {
            Some(self.take_of_client(client())?)
        };
        Some(Permit { client })
    }

    fn take_of_client(&mut self, client: Vec<u8>) -> Option<Vec<u8>> {
        let taken: u32 = self.clients.iter().map(|(_, count)| count).sum();
        if taken >= BEYOND {
            return None;
        }
        match self.clients.iter_mut().find(|(found, _)| *found == client) {
            Some((_, count)) if *count >= PER_CLIENT => return None,
            Some((_, count)) => *count = count.saturating_add(1),
            None => self.clients.push((client.clone(), 1)),
        }
        Some(client)
    }

    /// Returns a permit that was taken here.
    pub fn give_back(&mut self, permit: &Permit) {
        let Some(client) = &permit.client else {
            self.shared = self.shared.saturating_sub(1);
            return;
        };
        self.clients.retain_mut(|(found, count)| {
            if found == client {
                *count = count.saturating_sub(1);
            }
            *count > 0
        });
    }
}

#[cfg(test)]
mod tests;
