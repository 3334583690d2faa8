//! A sample of several lines. Prometheus accepts a line break within a quoted label value of the text
//! format, for example in a stack trace. Other parsers accept it only as `\\n`.

/// Maximum length of a sample in bytes.
pub(super) const LINE_LIMIT: usize = 64 * 1024;
/// Maximum number of lines of a sample. The sample is read again with each line that has a quote.
const LINES: usize = 100;

/// The first lines of a sample whose last quote is not closed yet.
#[derive(Debug)]
pub(super) struct OpenSample {
    /// Number of the first line.
    pub(super) first: u64,
    /// The lines, separated by line breaks.
    text: Vec<u8>,
    count: usize,
}

impl OpenSample {
    pub(super) fn new(line: &[u8], first: u64) -> Self {
        Self { first, text: line.to_vec(), count: 1 }
    }

    /// Appends a line. Returns false and changes nothing if the sample would be too long.
    pub(super) fn push(&mut self, line: &[u8]) -> bool {
        if self.count == LINES || self.text.len() + 1 + line.len() > LINE_LIMIT {
            return false;
        }
        self.text.push(b'\n');
        self.text.extend_from_slice(line);
        self.count += 1;
        true
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// Removes the last line; `length` is the length without it.
    pub(super) fn truncate(&mut self, length: usize) {
        self.text.truncate(length);
        self.count -= 1;
    }

    /// Returns the lines and their numbers.
    pub(super) fn lines(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.text.split(|byte| *byte == b'\n').zip(self.first..)
    }
}

#[cfg(test)]
mod tests;
