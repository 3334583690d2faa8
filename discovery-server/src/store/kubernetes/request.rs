//! Requests on WorkloadEntries, and the errors of all requests to the API server.

use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    Read,
    Create(Value),
    Replace(Value),
    ReplaceStatus(Value),
    /// Delete exactly this object.
    Delete {
        uid: String,
        version: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// HTTP status 404.
    #[error("not found")]
    NotFound,
    /// HTTP status 409: the object has changed since it was read.
    #[error("conflict")]
    Conflict,
    /// The API server rejected the request.
    #[error("{0}")]
    Rejected(String),
    /// The API server failed, is overloaded, or did not answer in time.
    #[error("{0}")]
    Unreachable(String),
}
