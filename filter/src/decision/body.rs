//! Replaces the application's response body chunk by chunk: the application's text must not reach
//! kubelet's events.

/// The number of bytes of a body that kubelet reads (`maxRespBodyLength` in `pkg/probe/http`).
const KUBELET_READ_LIMIT: u64 = 10 << 10;

/// The state of one response body.
#[derive(Debug, Default)]
pub struct BodyFilter {
    bytes: u64,
    spaces_sent: bool,
}

/// The replacement of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkEdit {
    /// The chunk is empty and stays as it is.
    Keep,
    /// The chunk is replaced by no bytes.
    Clear,
    /// The chunk is replaced by [`SPACES`] spaces, after which kubelet stops reading. This happens
    /// at most once in a body.
    Spaces,
}

/// The number of spaces: one more than kubelet reads.
pub const SPACES: usize = 10_241;

impl BodyFilter {
    /// Decides about a chunk of `size` bytes. `end` is true for the last chunk.
    pub fn on_chunk(&mut self, size: usize, end: bool) -> ChunkEdit {
        self.bytes = self.bytes.saturating_add(u64::try_from(size).unwrap_or(u64::MAX));
        if self.bytes >= KUBELET_READ_LIMIT && !end && !self.spaces_sent {
            self.spaces_sent = true;
            return ChunkEdit::Spaces;
        }
        if size == 0 { ChunkEdit::Keep } else { ChunkEdit::Clear }
    }
}

#[cfg(test)]
mod tests;
