//! Reads attributes from Envoy.

use std::time::Duration;

use crate::abi::{self, BufferType, HeaderMap, Status};
use crate::attributes::{Attribute, Attributes, Unreadable};

/// Reads from the stream of the current callback.
pub(super) struct Envoy;

impl Attributes for Envoy {
    fn read(&self, attribute: Attribute) -> Result<Option<Vec<u8>>, Unreadable> {
        match attribute {
            Attribute::RequestHeader(name) => abi::header(HeaderMap::Request, name),
            Attribute::ResponseHeader(name) => abi::header(HeaderMap::Response, name),
            Attribute::CalloutHeader(name) => abi::header(HeaderMap::CallHeaders, name),
            Attribute::CalloutTrailer(name) => abi::header(HeaderMap::CallTrailers, name),
            Attribute::CalloutBody(max) => abi::buffer(BufferType::CallBody, max).map(Some),
            Attribute::CodeDetails => abi::property("response\0code_details"),
            Attribute::TransportFailure => abi::property("upstream\0transport_failure_reason"),
        }
        .map_err(|Status(_)| Unreadable)
    }

    fn elapsed(&self) -> Option<Duration> {
        // The arrival time of the request's first byte, in nanoseconds since 1970.
        let started = abi::property("request\0time").ok()??;
        let started = u64::from_le_bytes(started.try_into().ok()?);
        Some(Duration::from_nanos(abi::now().ok()?.saturating_sub(started)))
    }
}
