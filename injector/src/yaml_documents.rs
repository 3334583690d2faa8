//! Splits a stream into YAML and JSON documents, and keeps the exact bytes of each.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;

use crate::json::Unique;
use crate::yaml::{self, Repeats};

/// The maximum size of a document in bytes.
pub const DOCUMENT_LIMIT: usize = 8 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Yaml,
    Json,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Document<'a> {
    /// All bytes of the document, including the marker before it.
    pub text: &'a str,
    /// The text that was parsed: without byte order marks, and with the indentation that the parser
    /// wants. It has the same lines.
    pub parsed: Cow<'a, str>,
    /// The line on which it begins, counted from 1.
    pub line: usize,
    /// The number of the document among those with content, counted from 1; 0 if it has none.
    pub number: usize,
    pub format: Format,
    /// The parsed content; `null` if it has none.
    pub value: Value,
}

/// A document that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: document {number}: {reason}")]
pub struct StreamError {
    /// The line in the stream, counted from 1.
    pub line: usize,
    pub column: usize,
    pub number: usize,
    /// The error text of the parser.
    pub reason: String,
}

/// Parses a stream of YAML or JSON documents. An error in one document does not affect the others.
pub fn read(text: &str) -> Vec<Result<Document<'_>, StreamError>> {
    let mut documents = Vec::new();
    let mut number = 0;
    let mut line = 1;
    let mut after_end = false;
    let mut repeats = Repeats::default();
    for range in split_documents(text) {
        let piece = &text[range];
        let next_line = line + piece.matches('\n').count();
        let ignored = ignored_by_kubectl(piece, after_end);
        after_end = piece.lines().next_back().is_some_and(|line| is_marker(line, "..."));
        let read = match ignored {
            Some((index, reason)) => fail(line + index, 1, number + 1, reason),
            None => piece_documents(piece, line, number, &mut repeats),
        };
        for document in read {
            number =
                document.as_ref().map_or_else(|error| error.number, |document| document.number).max(number);
            documents.push(document);
        }
        line = next_line;
    }
    documents
}

/// Splits at lines that begin with `---`, as kubectl does, and at the lines `...`.
fn split_documents(text: &str) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let (mut start, mut at, mut directive) = (0, 0, false);
    // The end of the blank lines at the start of the piece.
    let mut blank = 0;
    for line in text.split_inclusive('\n') {
        let next = at + line.len();
        if line.starts_with("---") {
            // A directive belongs to the document after the next marker.
            if !directive && at > start {
                pieces.push(start..at);
                start = at;
            }
            directive = false;
        } else if is_marker(line, "...") {
            pieces.push(start..next);
            start = next;
        } else if line.starts_with('%') && blank.max(start) == at {
            directive = true;
        }
        if blank.max(start) == at && is_blank(line) {
            blank = next;
        }
        at = next;
    }
    if at > start {
        pieces.push(start..at);
    }
    pieces
}

/// Returns true if a line is a marker, which a comment may follow.
fn is_marker(line: &str, marker: &str) -> bool {
    let rest = line.trim_end().strip_prefix(marker);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
}

/// Returns the index of the first line of a document that kubectl does not read, and the reason.
fn ignored_by_kubectl(piece: &str, after_end: bool) -> Option<(usize, &'static str)> {
    let first = piece.lines().next()?;
    if let Some(rest) = first.strip_prefix("---") {
        let is_alone = rest.trim().is_empty() || is_marker(first, "---") && rest.trim().starts_with('#');
        return (!is_alone).then_some((0, "kubectl accepts only a comment after ---; begin a new line"));
    }
    let index = piece.lines().position(|line| !is_blank(line) && !is_marker(line, "..."))?;
    after_end.then_some((index, "kubectl ignores what follows ...; begin a new document with ---"))
}

/// Returns true if a line has no content: only whitespace, a comment or a directive.
fn is_blank(line: &str) -> bool {
    let line = line.trim_start_matches('\u{feff}').trim_start();
    line.is_empty() || line.starts_with(['#', '%'])
}

fn fail<'a>(
    line: usize,
    column: usize,
    number: usize,
    reason: &str,
) -> Vec<Result<Document<'a>, StreamError>> {
    vec![Err(StreamError { line, column, number, reason: reason.to_owned() })]
}

fn piece_documents<'a>(
    piece: &'a str,
    line: usize,
    before: usize,
    repeats: &mut Repeats,
) -> Vec<Result<Document<'a>, StreamError>> {
    if piece.len() > DOCUMENT_LIMIT {
        return fail(line, 1, before + 1, "more than 8 MiB");
    }
    let body = piece.trim_start_matches('\u{feff}');
    if body.trim_start().starts_with('{')
        && let Some(documents) = json_documents(piece, line, before)
    {
        return documents;
    }
    // Editors write one at the start of a file, which may follow another file after a marker.
    let marked = body.starts_with("---").then(|| body.split_once("\n\u{feff}")).flatten();
    let marked = marked.filter(|(marker, _)| !marker.contains('\n'));
    let body = marked.map_or(Cow::Borrowed(body), |(marker, rest)| format!("{marker}\n{rest}").into());
    let (parsed, value) = match body {
        Cow::Borrowed(body) => yaml::repaired_value(body, repeats),
        Cow::Owned(body) => {
            let (parsed, value) = yaml::repaired_value(&body, repeats);
            (Cow::Owned(parsed.into_owned()), value)
        }
    };
    match value {
        Ok(value) => {
            let number = if value.is_null() { 0 } else { before + 1 };
            vec![Ok(Document { text: piece, parsed, line, number, format: Format::Yaml, value })]
        }
        Err(error) => {
            let number = |number: u64| usize::try_from(number).unwrap_or(1).max(1);
            fail(line + number(error.line) - 1, number(error.column), before + 1, &error.reason)
        }
    }
}

/// Parses consecutive JSON values; `None` if this is not JSON, and so YAML.
fn json_documents(piece: &str, line: usize, before: usize) -> Option<Vec<Result<Document<'_>, StreamError>>> {
    let offset = piece.len() - piece.trim_start_matches('\u{feff}').len();
    let mut values = serde_json::Deserializer::from_str(&piece[offset..]).into_iter::<Unique>();
    let mut documents = Vec::new();
    let (mut start, mut line_of_value) = (0, line);
    while let Some(value) = values.next() {
        let number = before + documents.len() + 1;
        match value {
            Ok(Unique(value)) => {
                let mut end = offset + values.byte_offset();
                // The whitespace after a value belongs to it.
                end +=
                    piece[end..].find(|char: char| !char.is_ascii_whitespace()).unwrap_or(piece.len() - end);
                let text = &piece[start..end];
                documents.push(Ok(Document {
                    text,
                    parsed: Cow::Borrowed(text),
                    line: line_of_value,
                    number,
                    format: Format::Json,
                    value,
                }));
                line_of_value += text.matches('\n').count();
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
    /// Returns the document with another value. Markers, comments and directives before the content
    /// are kept, and so is an end marker.
    pub fn with_value(&self, value: &Value, format: Format) -> String {
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
            if !is_blank(line) && !line.starts_with("---") {
                break;
            }
            head.push_str(line.trim_end());
            head.push('\n');
        }
        let end = self.text.lines().next_back().is_some_and(|line| line.trim_end() == "...");
        head + &body + if end { "...\n" } else { "" }
    }
}

#[cfg(test)]
mod tests;
