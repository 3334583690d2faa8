//! What takes the place of the application's body, chunk by chunk.

/// kubelet reads this much of a body before it judges, in bytes (`maxRespBodyLength` in `pkg/probe/http`).
const BODY: u64 = 10 << 10;

/// How much of an answer's body has passed.
#[derive(Debug, Default)]
pub struct Body {
    seen: u64,
    filled: bool,
}

/// What takes the place of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// The chunk is empty already.
    Untouched,
    /// Nothing.
    Empty,
    /// As many blanks as make kubelet stop reading, once.
    Blanks,
}

/// One more than kubelet reads.
pub const BLANKS: usize = 10_241;

impl Body {
    /// Decides about a chunk of `size` bytes; `end`: the body ends with it.
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
