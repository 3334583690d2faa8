//! What is worth a line in the log or a count.

use std::net::SocketAddr;

use super::{Condition, StreamId};
use crate::objects::Key;

/// A closed set; texts of peers in it are printable and short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A stream is bound to an entry.
    Registered {
        /// The stream.
        stream: StreamId,
        /// The entry.
        key: Key,
    },
    /// A stream waits for its group or entry.
    Pending {
        /// The stream.
        stream: StreamId,
        /// What it waits for.
        key: Key,
        /// Why, in our words.
        why: &'static str,
    },
    /// A report changed what is known of the entry, or began a session.
    Applied {
        /// The entry.
        key: Key,
    },
    /// A report said again what is known.
    Repeated {
        /// The entry.
        key: Key,
    },
    /// A report of an older generation, another process or a superseded stream was dropped.
    Stale {
        /// The stream.
        stream: StreamId,
    },
    /// A report or a stream was refused.
    Refused {
        /// The stream.
        stream: StreamId,
        /// Why.
        refusal: Refusal,
    },
    /// The condition's status or reason changed.
    Transition {
        /// The entry.
        key: Key,
        /// `None`: not health-checked.
        condition: Option<Condition>,
        /// Whether Envoys are sent there now.
        served: bool,
    },
    /// An entry was deleted.
    Deleted {
        /// The entry.
        key: Key,
        /// Why.
        gone: Gone,
    },
    /// A new stream reports on an entry whose reporter stream lived.
    Takeover {
        /// The entry.
        key: Key,
        /// Who reports now.
        peer: SocketAddr,
    },
    /// More than 5 takeovers within a minute: two machines report on one entry.
    DuplicateAgent {
        /// The entry.
        key: Key,
    },
    /// A stream's peer is not the entry's address.
    PeerAddress {
        /// The entry.
        key: Key,
        /// Whence it came.
        peer: SocketAddr,
        /// Whether the stream was refused.
        refused: bool,
    },
    /// An agent does not report though its stream is open, or its reporter stream is gone.
    Silent {
        /// The entry.
        key: Key,
    },
    /// An agent refused a probe.
    ProbeNacked {
        /// The entry.
        key: Key,
        /// The agent's text.
        text: String,
    },
}

/// Why a report or a stream was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The first request lacks something or contradicts itself.
    Node,
    /// Namespace or service account.
    Identity,
    /// The peer's address.
    PeerAddress,
    /// The entry's name is taken by something else.
    NameTaken,
    /// A report on a stream that has no entry.
    NoEntry,
}

/// Why an entry was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gone {
    /// Its stream was lost and the grace is over.
    Disconnected,
    /// Its group was deleted.
    GroupDeleted,
    /// By somebody else, in the store.
    ByHand,
}
