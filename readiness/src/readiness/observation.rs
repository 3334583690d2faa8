//! The input of [`super::Readiness`].

use crate::admin::{AdminResponse, DataPathResponse};
use address::RequestFailure;

/// Event, or result of a request, that affects readiness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observation {
    /// The connection of a request was accepted.
    Accepted(Channel),
    Admin(Result<AdminResponse, RequestFailure>),
    DataPath(Result<DataPathResponse, RequestFailure>),
    Started,
    Exited,
    /// The child process will be started again.
    Restarting,
    Draining,
    /// The drain was reversed.
    Undrained,
    Terminating,
    /// The agent answers DNS queries, and waits for the names of the mesh.
    NamesAwaited,
    NamesReceived,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    Admin,
    DataPath,
}
