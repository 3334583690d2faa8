//! The client of a connection, and what its streams share.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

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
    closing: CancellationToken,
    /// A stream may end shortly after its connection. The connection's permit is released with the last
    /// of them, so that the client that gets it also gets a permit for a stream.
    _permit: OwnedSemaphorePermit,
}

impl StreamGuard {
    pub(super) fn new(permit: OwnedSemaphorePermit) -> Self {
        Self(Arc::new(Connection { closing: CancellationToken::new(), _permit: permit }))
    }

    /// Closes the whole connection: HTTP/2 keeps an ended stream for as long as its peer reads
    /// nothing.
    pub(super) fn close_connection(&self) {
        self.0.closing.cancel();
    }

    pub(super) async fn closed(&self) {
        self.0.closing.cancelled().await;
    }

    pub(super) fn has_streams(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}
