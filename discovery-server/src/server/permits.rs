//! Permits that one stream holds: of its connection, of its peer, and of all streams.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use tonic::Status;

use super::Shared;
use super::peer::{Peer, StreamGuard};
use crate::metrics::StreamKind;
use discovery::identity::CertificateIdentity;
use discovery::limits;

/// Permits of one stream; they are released on drop.
pub(super) struct StreamPermits {
    pub(super) shared: Arc<Shared>,
    peer: Option<limits::Peer>,
    /// Set when the first request has identified the client.
    pub(super) kind: Option<StreamKind>,
    /// Released before the connection, which ends with its last `connection`.
    _streams: OwnedSemaphorePermit,
    pub(super) connection: StreamGuard,
}

impl StreamPermits {
    pub(super) fn new(peer: &Peer, shared: &Arc<Shared>, connection: StreamGuard) -> Result<Self, Status> {
        let streams = shared.streams.clone().try_acquire_owned();
        let streams =
            streams.map_err(|_| Status::resource_exhausted("too many streams, see --max-streams"))?;
        let peer = match &peer.certified {
            Some(Ok(CertificateIdentity { identity, .. })) => {
                let peer = (identity.clone(), peer.address.ip());
                let entered = shared.admission().admit(&peer, shared.now());
                entered.map_err(|error| Status::resource_exhausted(error.to_string()))?;
                Some(peer)
            }
            _ => None,
        };
        connection.stream_opened();
        Ok(Self { shared: shared.clone(), peer, kind: None, _streams: streams, connection })
    }
}

impl Drop for StreamPermits {
    fn drop(&mut self) {
        if let Some(peer) = &self.peer {
            self.shared.admission().release(peer);
        }
        if let Some(kind) = self.kind {
            self.shared.metrics.stream_closed(kind);
        }
        self.connection.stream_closed();
    }
}
