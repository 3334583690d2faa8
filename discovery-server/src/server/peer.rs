//! The client of a connection, and what its streams share.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use super::handshakes::Handshake;
use super::open_connections::OpenConnection;
use discovery::identity::{CertificateIdentity, IdentityError};

/// The client of a connection.
#[derive(Clone)]
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    /// `None` on a plaintext connection.
    pub(super) certified: Option<Result<CertificateIdentity, IdentityError>>,
}

/// Held by a connection and by each of its streams.
#[derive(Clone)]
pub(super) struct StreamGuard(Arc<Connection>);

struct Connection {
    /// A stream may end shortly after its connection. The connection counts as open until the last of
    /// them has ended, so that the client that gets it also gets a permit for a stream.
    open: OpenConnection,
    /// Counts as failed unless a stream is opened; `None` on a plaintext connection.
    handshake: Mutex<Option<Handshake>>,
}

impl StreamGuard {
    pub(super) fn new(open: OpenConnection, handshake: Option<Handshake>) -> Self {
        Self(Arc::new(Connection { open, handshake: Mutex::new(handshake) }))
    }

    /// Closes the whole connection: HTTP/2 keeps an ended stream for as long as its peer reads
    /// nothing.
    pub(super) fn close_connection(&self) {
        self.0.open.closing.cancel();
    }

    pub(super) async fn closed(&self) {
        self.0.open.closing.cancelled().await;
    }

    pub(super) fn has_streams(&self) -> bool {
        self.0.open.has_streams()
    }

    /// Counts a stream. [`Self::stream_closed`] must follow.
    pub(super) fn stream_opened(&self) {
        self.0.open.stream_opened();
        let handshake = self.0.handshake.lock().expect("nothing panics while it holds this lock").take();
        if let Some(handshake) = handshake {
            handshake.succeeded();
        }
    }

    pub(super) fn stream_closed(&self) {
        self.0.open.stream_closed();
    }
}
