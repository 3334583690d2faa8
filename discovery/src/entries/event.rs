//! Events for the log and the metrics.

use std::net::SocketAddr;

use super::{Condition, StreamId};
use crate::objects::Key;

/// A logged or counted event. Texts from peers in it are printable and short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A stream was bound to an entry.
    Registered {
        stream: StreamId,
        key: Key,
    },
    /// A stream waits for its group or entry.
    Pending {
        stream: StreamId,
        /// The group or entry that it waits for.
        key: Key,
        reason: &'static str,
    },
    /// A health report was processed.
    Report(ReportOutcome),
    /// A stream was rejected.
    Rejected {
        stream: StreamId,
        reason: RejectionReason,
    },
    /// The status or the reason of the condition changed.
    Transition {
        key: Key,
        /// `None` if the entry is not health-checked.
        condition: Option<Condition>,
        /// True if Envoys send requests to the endpoint now.
        served: bool,
    },
    Deleted {
        key: Key,
        reason: DeletionReason,
    },
    /// A new stream became the reporting stream while the previous one was open.
    ReporterReplaced {
        key: Key,
        /// Peer of the new stream.
        peer: SocketAddr,
    },
    /// The reporting stream was replaced more than 5 times within a minute: probably two machines
    /// report on one entry.
    DuplicateAgent {
        key: Key,
    },
    /// The peer address of a stream is not the address of the entry.
    PeerAddress {
        key: Key,
        peer: SocketAddr,
        /// True if the stream was rejected.
        refused: bool,
    },
    /// The agent does not report although its stream is open, or the reporting stream was lost.
    Silent {
        key: Key,
    },
    /// The agent rejected a probe.
    ProbeNacked {
        key: Key,
        /// The agent's error message.
        text: String,
    },
}

/// Result of processing a health report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportOutcome {
    /// The report changed the entry or began a session.
    Applied,
    /// The report repeated the known state.
    Repeated,
    /// The report is of an older generation, another agent process or a superseded stream.
    Stale,
    /// The stream has no entry to report on.
    Rejected,
}

/// Reason why a stream was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RejectionReason {
    /// The first request lacks a required field or contradicts itself.
    Node,
    /// The namespace or the service account does not match the entry.
    Identity,
    /// The peer address is not the entry's address.
    PeerAddress,
    /// The entry name belongs to a manual entry or another group.
    NameTaken,
    /// The identity or the source has registered too many entries.
    Limit,
}

/// Reason why an entry was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeletionReason {
    /// The last stream was lost and the grace period has passed.
    Disconnected,
    GroupDeleted,
    /// The entry was deleted from the configuration or in the store.
    Removed,
}
