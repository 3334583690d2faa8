//! A stream of documents: where each begins and ends, byte for byte, and what it holds.

use std::ops::Range;

use serde_json::Value;

use crate::json::Unique;
use crate::yaml;

/// The largest document, in bytes.
pub const DOCUMENT_LIMIT: usize = 8 << 20;

/// How a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// As YAML.
    Yaml,
    /// As JSON.
    Json,
}

/// One document of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Document<'a> {
    /// All its bytes, the marker before it included.
    pub text: &'a str,
    /// The line on which it begins, from 1.
    pub line: usize,
    /// Its number among those that hold something, from 1; 0 for one that holds nothing.
    pub number: usize,
    /// How it came.
    pub format: Format,
    /// What it holds; `null` for nothing.
    pub value: Value,
}

/// A document that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: document {number}: {reason}")]
pub struct StreamError {
    /// In the stream, from 1.
    pub line: usize,
    /// From 1.
    pub column: usize,
    /// Of the document.
    pub number: usize,
    /// The reader's words.
    pub reason: String,
}

/// Reads a stream of YAML or JSON documents, each by itself: one that is wrong does not hide the others.
pub fn read(text: &str) -> Vec<Result<Document<'_>, StreamError>> {
    let mut documents = Vec::new();
    let mut number = 0;
    let mut line = 1;
    for range in pieces(text) {
        let piece = &text[range];
        let next_line = line + piece.matches('\n').count();
        for document in piece_documents(piece, line, number) {
            number =
                document.as_ref().map_or_else(|error| error.number, |document| document.number).max(number);
            documents.push(document);
        }
        line = next_line;
    }
    documents
}

/// Cuts at the lines `---` and `...`. YAML forbids those in column 0 of a scalar, so nothing else is cut.
fn pieces(text: &str) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let (mut start, mut at, mut directive) = (0, 0, false);
    for line in text.split_inclusive('\n') {
        let next = at + line.len();
        let word = line.trim_end_matches(['\n', '\r']);
        let marks = |marker: &str| {
            word.strip_prefix(marker).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
        };
        if marks("---") {
            // A directive belongs to the document whose marker follows.
            if !directive && at > start {
                pieces.push(start..at);
                start = at;
            }
            directive = false;
        } else if marks("...") {
            pieces.push(start..next);
            start = next;
        } else if word.starts_with('%') && text[start..at].lines().all(is_blank) {
            directive = true;
        }
        at = next;
    }
    if at > start {
        pieces.push(start..at);
    }
    pieces
}

/// Whether a line holds nothing: blanks, a comment, a directive.
fn is_blank(line: &str) -> bool {
    let line = line.trim_start_matches('\u{feff}').trim_start();
    line.is_empty() || line.starts_with(['#', '%'])
}

fn piece_documents(piece: &str, line: usize, before: usize) -> Vec<Result<Document<'_>, StreamError>> {
    let fail = |line, column, number, reason: &str| {
        vec![Err(StreamError { line, column, number, reason: reason.to_owned() })]
    };
    if piece.len() > DOCUMENT_LIMIT {
        return fail(line, 1, before + 1, "more than 8 MiB");
    }
    let body = piece.trim_start_matches('\u{feff}');
    if body.trim_start().starts_with('{')
        && let Some(documents) = json_documents(piece, line, before)
    {
        return documents;
    }
    match yaml::value(body) {
        Ok(value) => {
            let number = if value.is_null() { 0 } else { before + 1 };
            vec![Ok(Document { text: piece, line, number, format: Format::Yaml, value })]
        }
        Err(error) => {
            let number = |number: u64| usize::try_from(number).unwrap_or(1).max(1);
            fail(line + number(error.line) - 1, number(error.column), before + 1, &error.reason)
        }
    }
}

/// JSON values one after the other; `None` if this is no JSON, which leaves YAML.
fn json_documents(piece: &str, line: usize, before: usize) -> Option<Vec<Result<Document<'_>, StreamError>>> {
    let offset = piece.len() - piece.trim_start_matches('\u{feff}').len();
    let mut values = serde_json::Deserializer::from_str(&piece[offset..]).into_iter::<Unique>();
    let mut documents = Vec::new();
    let mut start = 0;
    while let Some(value) = values.next() {
        let number = before + documents.len() + 1;
        match value {
            Ok(Unique(value)) => {
                let mut end = offset + values.byte_offset();
                // The line end behind a value belongs to it.
                end +=
                    piece[end..].find(|char: char| !char.is_ascii_whitespace()).unwrap_or(piece.len() - end);
                let line = line + piece[..start].matches('\n').count();
                documents.push(Ok(Document {
                    text: &piece[start..end],
                    line,
                    number,
                    format: Format::Json,
                    value,
                }));
                start = end;
            }
            Err(error) if error.is_data() => {
                let reason = error.to_string();
                let reason = reason.split(" at line ").next().unwrap_or_default().to_owned();
                documents.push(Err(StreamError {
                    line: line + error.line() - 1,
                    column: error.column(),
                    number,
                    reason,
                }));
                return Some(documents);
            }
            Err(_) => return None,
        }
    }
    Some(documents)
}

impl Document<'_> {
    /// The bytes of the same document with another value: what stood before its content stays (marker, comments), and so does a
    /// marker at its end.
    pub fn with(&self, value: &Value, format: Format) -> String {
        let body = match format {
            Format::Yaml => yaml::text(value),
            Format::Json => serde_json::to_string_pretty(value).expect("a JSON value can be written") + "\n",
        };
        if format == Format::Json || self.format == Format::Json {
            return body;
        }
        let mut head = String::new();
        for line in self.text.lines() {
            let line = line.trim_start_matches('\u{feff}');
            let marker = line.strip_prefix("---").map(str::trim_start);
            match marker {
                Some(rest) if rest.is_empty() || rest.starts_with('#') => head.push_str(line.trim_end()),
                Some(_) => {
                    head.push_str("---\n");
                    break;
                }
                None if is_blank(line) => head.push_str(line.trim_end()),
                None => break,
            }
            head.push('\n');
        }
        let end = self.text.lines().next_back().is_some_and(|line| line.trim_end() == "...");
        head + &body + if end { "...\n" } else { "" }
    }
}

#[cfg(test)]
mod tests;
