//! Reads from Envoy what the decisions need: the response to a callout, the `location` of a
//! redirect, and the time since the request arrived.

use std::time::Duration;

use probe::grpc_health::MAX_RESPONSE_BYTES;

use crate::abi::{self, BufferType, CallSize, HeaderMap};
use crate::decision::CalloutResult;

/// The Envoy attribute with the arrival time of the request's first byte, in nanoseconds since
/// 1970.
const REQUEST_TIME: &str = "request\0time";
/// The number of bytes of a redirect's response body that are read, enough to recognize a local
/// reply of Envoy.
const HOP_BYTES: usize = 256;
/// A value that is no valid URL, because the scheme before the colon is missing.
const INVALID_URL: &[u8] = b":";

/// Returns the `location` header. If reading fails, returns an invalid URL and not `None`: kubelet
/// treats a redirect without `location` as success.
pub(super) fn location(map: HeaderMap) -> Option<Vec<u8>> {
    abi::header(map, "location").unwrap_or_else(|_| Some(INVALID_URL.to_vec()))
}

/// Returns the time since the request arrived, by the wall clock.
pub(super) fn elapsed() -> Option<Duration> {
    let started = abi::property(REQUEST_TIME).ok()??;
    let started = u64::from_le_bytes(started.try_into().ok()?);
    Some(Duration::from_nanos(abi::now().ok()?.saturating_sub(started)))
}

/// The response to a callout, as far as it was read.
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

/// Envoy starts the timer of a callout at the beginning of the event loop iteration, so the callout
/// may time out a little before the probe's timeout has passed.
const TIMER_TOLERANCE: Duration = Duration::from_millis(50);

impl Read {
    /// Reads a response. `check` is true for a gRPC check and false for a redirect; `timeout` is
    /// the probe's timeout.
    pub(super) fn of(check: bool, size: CallSize, timeout: Duration) -> Self {
        let CallSize { headers, body_size: body_length, trailers } = size;
        let timed_out =
            || elapsed().is_some_and(|elapsed| elapsed.saturating_add(TIMER_TOLERANCE) >= timeout);
        let header = |name| abi::header(HeaderMap::CallHeaders, name).ok().flatten();
        // A response that consists of headers only carries `grpc-status` there. If there is a body,
        // only the trailers can carry it.
        let trailer = |name| match (trailers, body_length) {
            (1.., _) => abi::header(HeaderMap::CallTrailers, name).ok().flatten(),
            (0, 0) => header(name),
            _ => None,
        };
        let answered = headers > 0;
        let of_check = |name, read: &dyn Fn(&'static str) -> Option<Vec<u8>>| {
            (answered && check).then(|| read(name)).flatten()
        };
        let of_hop = answered && !check;
        let shown = if check { MAX_RESPONSE_BYTES } else { HOP_BYTES };
        let body =
            (answered && body_length > 0).then(|| abi::buffer(BufferType::CallBody, shown.min(body_length)));
        Self {
            failed: (!answered).then(timed_out),
            status: of_hop.then(|| header(":status")).flatten(),
            location: of_hop.then(|| location(HeaderMap::CallHeaders)).flatten(),
            content_type: of_check("content-type", &header),
            grpc_status: of_check("grpc-status", &trailer),
            grpc_message: of_check("grpc-message", &trailer),
            body: body.and_then(Result::ok).unwrap_or_default(),
            body_length,
        }
    }

    pub(super) fn result(&self) -> CalloutResult<'_> {
        match self.failed {
            Some(timed_out) => CalloutResult::Failed { timed_out },
            None => CalloutResult::Response {
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
