//! What goes out of [`Writes`](super::Writes), and what comes back.

use serde_json::Value;

use crate::discovery::store::kubernetes::decision::Step;
use discovery::entries::Record;
use discovery::objects::Key;

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Ask the API server; [`Writes::answered`](super::Writes::answered) wants to know.
    Send(Key, Request),
    /// This write and all older ones of the entry are there.
    Stored(Key, u64),
    /// Somebody else wrote this; `None`: deleted.
    Observed(Key, Option<Box<Record>>),
    /// Somebody changed, made or deleted this object.
    Changed(Key),
}

/// A request on one WorkloadEntry.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Read it.
    Read,
    /// Or one of [`Step`]'s.
    Write(Step),
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The object as it is now.
    Object(Box<Value>),
    /// It is not there, or no longer.
    Absent,
    /// It is not what it was when we looked.
    Conflict,
    /// The API server says no.
    Refused,
    /// The API server says nothing, or that it cannot.
    Away,
}
