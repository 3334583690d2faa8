//! The connections of discovery. If all are in use, a client gets that of a source with more of them.

use std::collections::{BTreeMap, BTreeSet};

use pacing::source::Source;

/// A source keeps this many connections with streams, even if clients of other sources have none.
const PROTECTED: usize = 16;

/// Identifies a connection. Numbers are not reused.
pub type ConnectionId = u64;

/// The open connections of each source, each with a `T`.
#[derive(Debug)]
pub struct Connections<T> {
    limit: usize,
    next: ConnectionId,
    open: BTreeMap<ConnectionId, Connection<T>>,
    sources: BTreeMap<Source, SourceConnections>,
}

#[derive(Debug)]
struct Connection<T> {
    source: Source,
    streams: usize,
    data: T,
}

#[derive(Debug, Default)]
struct SourceConnections {
    unused: BTreeSet<ConnectionId>,
    with_streams: BTreeSet<ConnectionId>,
}

impl SourceConnections {
    fn len(&self) -> usize {
        self.unused.len() + self.with_streams.len()
    }
}

/// All connections are in use, and no source has more than its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllInUse;

impl<T> Connections<T> {
    pub fn new(limit: usize) -> Self {
        Self { limit, next: 0, open: BTreeMap::new(), sources: BTreeMap::new() }
    }

    pub fn is_full(&self) -> bool {
        self.open.len() >= self.limit
    }

    /// Adds a connection. Returns its number and, if all are in use, the data of the connection that
    /// it replaces.
    ///
    /// # Errors
    /// If all are in use and there is none that it may replace.
    pub fn admit(&mut self, source: Source, data: T) -> Result<(ConnectionId, Option<T>), AllInUse> {
        let replaced = self.is_full().then(|| self.replaceable(source).ok_or(AllInUse)).transpose()?;
        let replaced = replaced.and_then(|id| self.remove(id));
        let id = self.next;
        self.next += 1;
        self.open.insert(id, Connection { source, streams: 0, data });
        self.sources.entry(source).or_default().unused.insert(id);
        Ok((id, replaced))
    }

    /// Returns a connection of a source that has at least two more than this one: the oldest without a
    /// stream, of the source that has the most connections, or else the newest with streams.
    fn replaceable(&self, source: Source) -> Option<ConnectionId> {
        let own = self.sources.get(&source).map_or(0, SourceConnections::len);
        let greedy = || self.sources.values().filter(|other| other.len() > own + 1);
        let unused = greedy().filter(|other| !other.unused.is_empty()).max_by_key(|other| other.len());
        unused.and_then(|other| other.unused.first().copied()).or_else(|| {
            let most = greedy().max_by_key(|other| other.len())?;
            (most.len() > PROTECTED).then(|| most.with_streams.last().copied())?
        })
    }

    /// Removes a connection, and returns its data unless it was replaced.
    pub fn remove(&mut self, id: ConnectionId) -> Option<T> {
        let connection = self.open.remove(&id)?;
        let source = self.sources.get_mut(&connection.source)?;
        source.unused.remove(&id);
        source.with_streams.remove(&id);
        if source.len() == 0 {
            self.sources.remove(&connection.source);
        }
        Some(connection.data)
    }

    pub fn stream_opened(&mut self, id: ConnectionId) {
        let Some(connection) = self.open.get_mut(&id) else { return };
        connection.streams += 1;
        if let Some(source) = self.sources.get_mut(&connection.source) {
            source.unused.remove(&id);
            source.with_streams.insert(id);
        }
    }

    pub fn stream_closed(&mut self, id: ConnectionId) {
        let Some(connection) = self.open.get_mut(&id) else { return };
        connection.streams = connection.streams.saturating_sub(1);
        if connection.streams == 0
            && let Some(source) = self.sources.get_mut(&connection.source)
        {
            source.with_streams.remove(&id);
            source.unused.insert(id);
        }
    }

    /// Returns true if the connection is open and has a stream.
    pub fn has_streams(&self, id: ConnectionId) -> bool {
        self.open.get(&id).is_some_and(|connection| connection.streams > 0)
    }
}

#[cfg(test)]
mod tests;
