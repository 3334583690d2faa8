//! The response to an HTTP stream that the filter has started, as it arrives part by part.

use app_health_filter::decision::CalloutSize;
use probe::grpc_health::MAX_RESPONSE_BYTES;

use crate::abi::Headers;

/// The largest response body, in bytes. For callouts of the wasm form, Envoy has the same limit
/// (`http.async_response_buffer_limit` in the bootstrap).
const MAX_BODY: usize = 1 << 20;

/// A response. The state machine reads it when it is complete.
#[derive(Debug, Default)]
pub(crate) struct Callout {
    pub(crate) headers: Headers,
    /// The first bytes of the body, as many as the state machine reads.
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Headers,
    body_length: usize,
}

impl Callout {
    /// Returns false if the body is too large.
    pub(crate) fn on_data(&mut self, chunk: &[u8]) -> bool {
        let room = MAX_RESPONSE_BYTES.saturating_sub(self.body.len());
        self.body.extend_from_slice(chunk.get(..room).unwrap_or(chunk));
        self.body_length = self.body_length.saturating_add(chunk.len());
        self.body_length <= MAX_BODY
    }

    pub(crate) fn size(&self) -> CalloutSize {
        CalloutSize { headers: self.headers.len(), body: self.body_length, trailers: self.trailers.len() }
    }
}

/// Returns the first value of a header.
pub(crate) fn value(headers: &Headers, name: &str) -> Option<Vec<u8>> {
    headers.iter().find(|(other, _)| other == name.as_bytes()).map(|(_, value)| value.clone())
}
