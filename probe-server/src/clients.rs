//! Which clients may connect, and which of them are the node.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use address::Cidr;
use serving::http_server::{Peer, Plaintext, Transport};
use serving::source::Source;

/// The clients of the probe listener.
#[derive(Clone, Debug)]
pub struct ProbeClients(Arc<Lists>);

#[derive(Debug)]
struct Lists {
    /// Clients that may connect, besides loopback; if empty, any client may.
    allowed: Vec<Cidr>,
    /// The node's addresses; empty if they are not known.
    node: Vec<IpAddr>,
}

impl ProbeClients {
    /// `allowed` are the clients that may connect besides loopback, all if it is empty; `node` are the
    /// addresses from which kubelet probes, empty if they are not known.
    pub fn new(allowed: Vec<Cidr>, node: Vec<IpAddr>) -> Self {
        Self(Arc::new(Lists { allowed, node }))
    }
}

/// Returns the address of a client.
pub(crate) fn ip(peer: Peer) -> Option<IpAddr> {
    match peer {
        Peer::Tcp(address) => Some(address.ip().to_canonical()),
        Peer::Unix => None,
    }
}

impl Transport for ProbeClients {
    type Stream = <Plaintext as Transport>::Stream;

    async fn accept(&self, stream: Self::Stream, _: Option<Source>) -> io::Result<Self::Stream> {
        Ok(stream)
    }

    fn socket(stream: &Self::Stream) -> &Self::Stream {
        stream
    }

    fn admits_peer(&self, peer: Peer) -> bool {
        let allowed = &self.0.allowed;
        let is_allowed = |client: IpAddr| allowed.iter().any(|block| block.contains(client));
        allowed.is_empty() || peer.is_local() || ip(peer).is_some_and(is_allowed)
    }

    /// True for the node and loopback, if the node's addresses are known.
    fn is_trusted_peer(&self, peer: Peer) -> bool {
        let node = &self.0.node;
        !node.is_empty() && (peer.is_local() || ip(peer).is_some_and(|client| node.contains(&client)))
    }
}

#[cfg(test)]
mod tests;
