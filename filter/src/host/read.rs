//! What decisions need to know, read from Envoy: the answer to a callout, a redirect's target, the time that passed.

use std::time::Duration;

use probe::grpc_health::ANSWER_BYTES;

use crate::abi::{self, Buffer, CallSize, Map};
use crate::decision::CallResult;

/// When the request's first byte came, in nanoseconds since 1970.
const REQUEST_TIME: &str = "request\0time";
/// As much of a hop's body as tells whether Envoy wrote it, in bytes.
const HOP_BYTES: usize = 256;
/// No URL: a scheme is missing before the colon.
const UNREADABLE: &[u8] = b":";

/// Where a redirect points. One that cannot be read must not count as none, which kubelet takes as success.
pub(super) fn location(map: Map) -> Option<Vec<u8>> {
    abi::header(map, "location").unwrap_or_else(|_| Some(UNREADABLE.to_vec()))
}

/// How long ago the request came, by the wall clock.
pub(super) fn elapsed() -> Option<Duration> {
    let started = abi::property(REQUEST_TIME).ok()??;
    let started = u64::from_le_bytes(started.try_into().ok()?);
    Some(Duration::from_nanos(abi::now().ok()?.saturating_sub(started)))
}

/// What was read of a callout's answer.
pub(super) struct Read {
    failed: Option<bool>,
    status: Option<Vec<u8>>,
    location: Option<Vec<u8>>,
    content_type: Option<Vec<u8>>,
    grpc_status: Option<Vec<u8>>,
    grpc_message: Option<Vec<u8>>,
    body: Vec<u8>,
    body_length: usize,
}

/// Envoy counts a callout's time from the beginning of its event loop's turn, and so ends it a little early.
const EARLY: Duration = Duration::from_millis(50);

impl Read {
    /// `check`: of a gRPC check, else of a hop; `timeout`: the probe's.
    pub(super) fn of(check: bool, size: CallSize, timeout: Duration) -> Self {
        let CallSize { headers, body_size: body_length, trailers } = size;
        let late = || elapsed().is_some_and(|elapsed| elapsed.saturating_add(EARLY) >= timeout);
        let header = |name| abi::header(Map::CallHeaders, name).ok().flatten();
        // An answer of headers alone has its status there; after a body it is in the trailers or nowhere.
        let trailer = |name| match (trailers, body_length) {
            (1.., _) => abi::header(Map::CallTrailers, name).ok().flatten(),
            (0, 0) => header(name),
            _ => None,
        };
        let answered = headers > 0;
        let of_check = |name, read: &dyn Fn(&'static str) -> Option<Vec<u8>>| {
            (answered && check).then(|| read(name)).flatten()
        };
        let of_hop = answered && !check;
        let shown = if check { ANSWER_BYTES } else { HOP_BYTES };
        let body =
            (answered && body_length > 0).then(|| abi::buffer(Buffer::CallBody, shown.min(body_length)));
        Self {
            failed: (!answered).then(late),
            status: of_hop.then(|| header(":status")).flatten(),
            location: of_hop.then(|| location(Map::CallHeaders)).flatten(),
            content_type: of_check("content-type", &header),
            grpc_status: of_check("grpc-status", &trailer),
            grpc_message: of_check("grpc-message", &trailer),
            body: body.and_then(Result::ok).unwrap_or_default(),
            body_length,
        }
    }

    pub(super) fn result(&self) -> CallResult<'_> {
        match self.failed {
            Some(late) => CallResult::Failed { late },
            None => CallResult::Answered {
                status: self.status.as_deref(),
                location: self.location.as_deref(),
                content_type: self.content_type.as_deref(),
                grpc_status: self.grpc_status.as_deref(),
                grpc_message: self.grpc_message.as_deref(),
                body_length: self.body_length,
                body: &self.body,
            },
        }
    }
}
