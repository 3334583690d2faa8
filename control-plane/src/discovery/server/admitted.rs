//! Permits that one stream holds: of its connection, of its peer, and of all streams.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use tonic::Status;

use super::Shared;
use super::connection::{Peer, Use};
use crate::discovery::metrics::StreamKind;
use discovery::identity::Certified;
use discovery::limits;

/// Permits of one stream; they are released on drop.
pub(super) struct Admitted {
    pub(super) shared: Arc<Shared>,
    place: Option<limits::Peer>,
    /// Set when the first request has identified the client.
    pub(super) kind: Option<StreamKind>,
    _streams: OwnedSemaphorePermit,
    pub(super) connection: Use,
}

impl Admitted {
    pub(super) fn new(peer: &Peer, shared: &Arc<Shared>, connection: Use) -> Result<Self, Status> {
        let streams = shared.streams.clone().try_acquire_owned();
        let streams =
            streams.map_err(|_| Status::resource_exhausted("too many streams, see --max-streams"))?;
        let place = match &peer.certified {
            Some(Ok(Certified { identity, .. })) => {
                let place = (identity.clone(), peer.address.ip());
                let entered = shared.admission().enter(&place, shared.now());
                entered.map_err(|error| Status::resource_exhausted(error.to_string()))?;
                Some(place)
            }
            _ => None,
        };
        Ok(Self { shared: shared.clone(), place, kind: None, _streams: streams, connection })
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if let Some(place) = &self.place {
            self.shared.admission().leave(place);
        }
        if let Some(kind) = self.kind {
            self.shared.metrics.stream_closed(kind);
        }
    }
}
