//! The open connections of a listener, at most `--max-streams`. A client waits while none is free.

use std::sync::{Arc, Mutex, MutexGuard};

use discovery::connections::{AllInUse, ConnectionId, Connections};
use pacing::source::Source;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

#[derive(Clone)]
pub(super) struct OpenConnections(Arc<Listener>);

struct Listener {
    /// The data of a connection closes it.
    open: Mutex<Connections<CancellationToken>>,
    /// Notified when a connection has ended.
    ended: Notify,
}

/// A connection of [`OpenConnections`], which ends on drop.
pub(super) struct OpenConnection {
    connections: OpenConnections,
    id: ConnectionId,
    /// Cancelled to close the connection.
    pub(super) closing: CancellationToken,
}

impl OpenConnections {
    pub(super) fn new(limit: usize) -> Self {
        Self(Arc::new(Listener { open: Mutex::new(Connections::new(limit)), ended: Notify::new() }))
    }

    fn lock(&self) -> MutexGuard<'_, Connections<CancellationToken>> {
        self.0.open.lock().expect("nothing panics while it holds this lock")
    }

    pub(super) fn is_full(&self) -> bool {
        self.lock().is_full()
    }

    /// Waits until a connection is free, or can replace one of a source that has more of them.
    pub(super) async fn admit(&self, source: Source) -> OpenConnection {
        loop {
            let ended = self.0.ended.notified();
            match self.try_admit(source) {
                Ok(connection) => return connection,
                Err(AllInUse) => ended.await,
            }
        }
    }

    fn try_admit(&self, source: Source) -> Result<OpenConnection, AllInUse> {
        let closing = CancellationToken::new();
        let (id, replaced) = self.lock().admit(source, closing.clone())?;
        if let Some(replaced) = replaced {
            replaced.cancel();
        }
        Ok(OpenConnection { connections: self.clone(), id, closing })
    }
}

impl OpenConnection {
    pub(super) fn stream_opened(&self) {
        self.connections.lock().stream_opened(self.id);
    }

    pub(super) fn stream_closed(&self) {
        self.connections.lock().stream_closed(self.id);
    }

    pub(super) fn has_streams(&self) -> bool {
        self.connections.lock().has_streams(self.id)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.connections.lock().remove(self.id);
        self.connections.0.ended.notify_one();
    }
}
