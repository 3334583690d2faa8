//! Effects and requests of [`EntryWriter`](super::EntryWriter), and the responses to them.

use serde_json::Value;

use crate::discovery::store::kubernetes::decision::Step;
use discovery::entries::Record;
use discovery::objects::Key;

#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send this request; pass the response to
    /// [`EntryWriter::on_response`](super::EntryWriter::on_response).
    Send(Key, Request),
    /// This write and all older ones of the entry have been stored.
    Stored(Key, u64),
    /// Another writer changed this entry; `None`: deleted it.
    Observed(Key, Option<Box<Record>>),
    /// Another writer created, changed or deleted configuration in this object.
    ConfigChanged(Key),
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
pub enum ApiResult {
    /// The object in its current state.
    Object(Box<Value>),
    /// The object does not exist.
    NotFound,
    /// The object has changed since it was read.
    Conflict,
    /// The API server rejected the request.
    Rejected,
    /// The API server failed or did not answer.
    Unreachable,
}
