//! What the state machine reads from Envoy, at the moment when it needs it.

use std::time::Duration;

/// A value of the current stream or callout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attribute {
    RequestHeader(&'static str),
    ResponseHeader(&'static str),
    CalloutHeader(&'static str),
    CalloutTrailer(&'static str),
    /// The first bytes of a callout's response body, at most this many.
    CalloutBody(usize),
    /// The Envoy attribute `response.code_details`.
    CodeDetails,
    /// The Envoy attribute `upstream.transport_failure_reason`.
    TransportFailure,
    /// The Envoy attribute `source.address`: the client's address and port.
    SourceAddress,
}

/// Envoy cannot read an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

/// The reading side of a host: a form of the filter, or a table in tests.
pub trait Attributes {
    /// Returns a value; `None` if it is absent.
    fn read(&self, attribute: Attribute) -> Result<Option<Vec<u8>>, Unreadable>;

    /// Returns the time since the request arrived; `None` if the host does not know it.
    fn elapsed(&self) -> Option<Duration>;

    /// Returns a value; `None` if it is absent or cannot be read.
    fn value(&self, attribute: Attribute) -> Option<Vec<u8>> {
        self.read(attribute).ok().flatten()
    }

    /// Returns a `location` header. If it cannot be read, returns an invalid URL and not `None`:
    /// kubelet treats a redirect without `location` as success.
    fn location(&self, header: Attribute) -> Option<Vec<u8>> {
        // The scheme before the colon is missing.
        self.read(header).unwrap_or_else(|Unreadable| Some(b":".to_vec()))
    }
}

#[cfg(test)]
pub(crate) mod tests;
