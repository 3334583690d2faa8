//! The errors of one attempt to connect to the addresses of all servers, as one line.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Maximum number of different errors in the line, and of addresses for each of them.
const MAX_SHOWN: usize = 8;

/// Where an address failed. The errors of servers that were reached come first in the line: an expired
/// certificate says more than a server that does not listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// The server was reached, or the agent has no token for it.
    Handshake,
    /// No TCP connection was established.
    Connect,
    /// The name was not resolved.
    Lookup,
}

/// Errors by stage, server and text, with the addresses that have them. The order does not depend on that
/// of the attempts, which is random, so that an unchanged error has an unchanged line.
#[derive(Debug, Default)]
pub(super) struct AttemptErrors(BTreeMap<(Stage, String, String), BTreeSet<SocketAddr>>);

impl AttemptErrors {
    /// Adds an error; `address` is `None` if there is no address.
    pub(super) fn add(&mut self, stage: Stage, server: &str, address: Option<SocketAddr>, error: String) {
        self.0.entry((stage, server.to_owned(), error)).or_default().extend(address);
    }

    /// Returns the line, for example `discovery:15012 (10.0.0.1:15012): TLS handshake: certificate expired;
    /// discovery:15012 (10.0.0.2:15012, 10.0.0.3:15012): Connection refused (os error 111)`.
    pub(super) fn line(&self) -> String {
        if self.0.is_empty() {
            return "no address found".to_owned();
        }
        let errors = self.0.iter().map(|((_, server, error), addresses)| {
            let addresses = limited(addresses.iter().map(SocketAddr::to_string), ", ");
            let place = if addresses.is_empty() { server.clone() } else { format!("{server} ({addresses})") };
            format!("{place}: {error}")
        });
        limited(errors, "; ")
    }
}

fn limited(parts: impl ExactSizeIterator<Item = String>, separator: &str) -> String {
    let more = parts.len().saturating_sub(MAX_SHOWN);
    let mut shown: Vec<String> = parts.take(MAX_SHOWN).collect();
    shown.extend((more > 0).then(|| format!("and {more} more")));
    shown.join(separator)
}

#[cfg(test)]
mod tests;
