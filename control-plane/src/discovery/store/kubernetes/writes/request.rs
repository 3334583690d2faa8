//! Effects and requests of [`Writes`](super::Writes), and the responses to them.

use serde_json::Value;

use crate::discovery::store::kubernetes::decision::Step;
use discovery::entries::Record;
use discovery::objects::Key;

#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send this request; pass the response to [`Writes::answered`](super::Writes::answered).
    Send(Key, Request),
    /// This write and all older ones of the entry have been stored.
    Stored(Key, u64),
    /// Another writer changed this entry; `None`: deleted it.
    Observed(Key, Option<Box<Record>>),
    /// Another writer created, changed or deleted configuration in this object.
    Changed(Key),
}

/// A request on one WorkloadEntry.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    Read,
    /// Execute one of the writing [`Step`]s.
    Write(Step),
}

/// Result of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The object in its current state.
    Object(Box<Value>),
    /// The object does not exist.
    Absent,
    /// The object has changed since it was read.
    Conflict,
    /// The API server rejected the request.
    Refused,
    /// The API server failed or did not answer.
    Away,
}
