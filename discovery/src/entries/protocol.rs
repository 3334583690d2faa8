//! Inputs and effects of the state machine.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use workload_health::Report;

use super::{Event, Identity, Node, Preserved, Record, StreamId};
use crate::objects::{Config, Group, Key};

/// Input of a step.
#[derive(Clone, Debug)]
pub enum Input {
    /// The complete new configuration.
    Config(Arc<Config>),
    /// The first request of a stream.
    Opened {
        stream: StreamId,
        peer: SocketAddr,
        /// Identity in the client certificate; absent on the plaintext listener.
        identity: Option<Identity>,
        node: Box<Node>,
    },
    /// A health report arrived on a stream.
    Report { stream: StreamId, report: Report },
    /// The agent accepted the probe of this version.
    ProbeAcked {
        stream: StreamId,
        /// Version that was sent in the hello.
        version: String,
    },
    /// The agent rejected the probe.
    ProbeNacked {
        stream: StreamId,
        /// The agent's error message.
        text: String,
    },
    /// A stream ended, on either side.
    Closed { stream: StreamId },
    /// The store contains this write and all older ones of the key.
    Stored {
        key: Key,
        /// Number of the write in [`Effect::Write`].
        write: u64,
    },
    /// Another writer changed the entry in the store. A write of this instance that lost the
    /// conflict gets no [`Input::Stored`].
    Observed {
        key: Key,
        /// The record in the store now; `None` if it was deleted.
        record: Option<Box<Record>>,
    },
    /// The set of live instances that share the store, including this one. Entries of other
    /// instances are handled as disconnected.
    Replicas {
        /// Instance names as in `app-health/<name>`.
        alive: BTreeSet<String>,
        /// Instances that ended cleanly, and so have closed the streams of their agents.
        released: BTreeSet<String>,
    },
    /// This instance cannot tell the others that it is alive: its agents must move to them.
    EndReporters,
    /// True if the store is unreachable. In that state only reports remove endpoints.
    StoreUnreachable(bool),
    /// The entries that the last snapshot needs although they are silent or unhealthy.
    Preserved(BTreeMap<Key, Preserved>),
    /// The operator ends the self-preservation of endpoints: of a namespace, and of a WorkloadGroup, if
    /// given.
    Release { namespace: Option<String>, group: Option<String> },
    /// The process was suspended for some time, so reports and disconnects of that time are not
    /// processed yet.
    ProcessResumed,
    /// The time of [`super::Entries::next_due`] has passed.
    Tick,
}

/// An effect to be executed, in the returned order.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Command {
        stream: StreamId,
        command: StreamCommand,
    },
    /// Writes or deletes a record in the store.
    Write {
        key: Key,
        /// Number of the write, which increases within the process. Only the newest write of a key
        /// needs to be executed.
        write: u64,
        /// `None` deletes the record.
        record: Option<Box<Record>>,
        /// The session at the time of the decision. The store must not write if it finds a higher
        /// one.
        session: u64,
    },
    /// The entry as seen by Envoys may have changed.
    Changed {
        key: Key,
    },
    /// An event for the log and the metrics.
    Event(Event),
}

/// A message to the task of a stream.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamCommand {
    /// Sends an app-health agent its session, heartbeat and probe. The session is 0 while the
    /// stream waits for its group or entry.
    Hello {
        session: u64,
        /// Interval between two reports.
        heartbeat: Duration,
        /// The group with the probe; `None` for an entry without a group.
        probe: Option<Arc<Group>>,
    },
    /// Acknowledges a report that is stored durably.
    Ack { epoch: String, generation: u64 },
    /// Closes the stream. No input about it is expected any more.
    Close { code: Code, text: String },
}

/// gRPC status codes with which a stream is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    InvalidArgument,
    PermissionDenied,
    FailedPrecondition,
    ResourceExhausted,
    Aborted,
}
