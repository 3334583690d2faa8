//! Replaces the application's response body chunk by chunk: the application's text must not reach
//! kubelet's events.

/// The number of bytes of a body that kubelet reads (`maxRespBodyLength` in `pkg/probe/http`).
const BODY: u64 = 10 << 10;

/// The state of one response body.
#[derive(Debug, Default)]
pub struct Body {
    seen: u64,
    filled: bool,
}

/// The replacement of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// The chunk is empty and stays as it is.
    Untouched,
    /// The chunk is replaced by no bytes.
    Empty,
    /// The chunk is replaced by [`BLANKS`] spaces, after which kubelet stops reading. This happens
    /// at most once in a body.
    Blanks,
}

/// The number of spaces: one more than kubelet reads.
pub const BLANKS: usize = 10_241;

impl Body {
    /// Decides about a chunk of `size` bytes. `end` is true for the last chunk.
    pub fn on_chunk(&mut self, size: usize, end: bool) -> Chunk {
        self.seen = self.seen.saturating_add(u64::try_from(size).unwrap_or(u64::MAX));
        if self.seen >= BODY && !end && !self.filled {
            self.filled = true;
            return Chunk::Blanks;
        }
        if size == 0 { Chunk::Untouched } else { Chunk::Empty }
    }
}

#[cfg(test)]
mod tests;
