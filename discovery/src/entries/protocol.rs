//! What goes into a step and what comes out.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use workload_health::HealthReport;

use super::{Event, Identity, Node, Record};
use crate::objects::{Config, Group, Key};

/// A stream, by a number that is never used again in the life of the process.
pub type StreamId = u64;

/// What happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// All that is configured, anew.
    Config(Arc<Config>),
    /// A stream's first request.
    Opened {
        /// The new stream.
        stream: StreamId,
        /// Its peer's address.
        peer: SocketAddr,
        /// By its certificate; absent on the plaintext listener.
        identity: Option<Identity>,
        /// By its own account.
        node: Box<Node>,
    },
    /// A HealthInformation.
    Report {
        /// On this stream.
        stream: StreamId,
        /// The report.
        report: Report,
    },
    /// Our agent took the probe of this version.
    ProbeAcked {
        /// On this stream.
        stream: StreamId,
        /// The version that the hello carried.
        version: String,
    },
    /// Our agent refused the probe.
    ProbeNacked {
        /// On this stream.
        stream: StreamId,
        /// Why.
        text: String,
    },
    /// A stream ended, by whomever.
    Closed {
        /// This one.
        stream: StreamId,
    },
    /// The store has this write and all older ones of the key.
    Stored {
        /// The entry.
        key: Key,
        /// The number that [`Effect::Write`] gave it.
        write: u64,
    },
    /// Another writer put this into the store; `None`: deleted. A write of ours that lost against it gets no [`Input::Stored`].
    Observed {
        /// The entry.
        key: Key,
        /// What is there now.
        record: Option<Box<Record>>,
    },
    /// The instances that live, this one included: entries of the others are handled as disconnected. Only where several share a store.
    Replicas {
        /// Names as in `app-health/<name>`.
        alive: BTreeSet<String>,
    },
    /// The store is away, or back. Meanwhile nothing is removed but by reports.
    StoreAway(bool),
    /// The entries that the last snapshot keeps as the last endpoint of a service port.
    Kept(BTreeSet<Key>),
    /// The process did not run for a while: what agents said meanwhile, or that they are gone, is not known yet.
    Resumed,
    /// [`super::Entries::next_due`] has passed.
    Tick,
}

/// What an agent says of its workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// Of our agent.
    AppHealth(HealthReport),
    /// A peer that speaks only Istio's HealthInformation.
    Plain {
        /// Without `error_detail`.
        healthy: bool,
        /// The text of `error_detail`.
        message: String,
    },
}

/// What is to be done, in this order.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// To our agent: its session, heartbeat and probe; session 0 while it waits for its group or entry.
    Hello {
        /// On this stream.
        stream: StreamId,
        /// Its session.
        session: u64,
        /// How often it should report.
        heartbeat: Duration,
        /// Whose probe; `None` for an entry without a group.
        probe: Option<Arc<Group>>,
    },
    /// The report is stored durably.
    Ack {
        /// On this stream.
        stream: StreamId,
        /// Of the report.
        epoch: String,
        /// Of the report.
        generation: u64,
    },
    /// End the stream; nothing of it is awaited any more.
    Close {
        /// This one.
        stream: StreamId,
        /// gRPC's status.
        code: Code,
        /// Its message.
        text: String,
    },
    /// Store a record.
    Write {
        /// The entry.
        key: Key,
        /// Grows with each write of the process; the newest of a key is enough.
        write: u64,
        /// `None`: delete.
        record: Option<Box<Record>>,
        /// The session that this was decided on: whoever finds a higher one in the store does not write.
        session: u64,
    },
    /// What Envoys see of this entry may differ.
    Changed {
        /// The entry.
        key: Key,
    },
    /// For log and metrics.
    Note(Event),
}

/// gRPC's status codes that a stream may end with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// 3.
    InvalidArgument,
    /// 7.
    PermissionDenied,
    /// 9.
    FailedPrecondition,
    /// 10.
    Aborted,
}
