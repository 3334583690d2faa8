//! Merges several expositions into one in the text format, which has complete lines and one `HELP`
//! and one `TYPE` per family.

use std::borrow::Cow;

use super::families::{Families, FamilyLimit, Kind};
use super::line::{Format, Line, Sample, is_value};
use super::source::ScrapeResult;
use crate::http_client::RequestFailure;

const LINE_LIMIT: usize = 64 * 1024;

#[derive(Debug, Default)]
pub struct Merge {
    families: Families,
    duplicates: u64,
}

/// State of one source, which is fed in chunks and output in complete lines.
#[derive(Debug)]
pub struct SourceState {
    format: Format,
    limit: FamilyLimit,
    /// Start of a line whose end was not received yet.
    unfinished: Vec<u8>,
    /// Family and name of the last `TYPE` line; in OpenMetrics they may differ.
    renamed: Option<(String, String)>,
    /// Pending `HELP` line; the `TYPE` line that follows may rename its family.
    help: Option<(String, String)>,
    /// Name of the last sample and type of its family, which the next sample mostly shares.
    last: (String, Kind),
}

impl SourceState {
    pub fn new(format: Format, limit: FamilyLimit) -> Self {
        let last = (String::new(), Kind::Other);
        Self { format, limit, unfinished: Vec::new(), renamed: None, help: None, last }
    }
}

impl Merge {
    /// Returns the number of `HELP` and `TYPE` lines that were dropped because their family already
    /// had one.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Parses a chunk of `source` and appends its complete lines to `out`. The error is
    /// `BadBody` if the source is malformed, and `TooLarge` if it has too many families. After an
    /// error no more chunks of this source may be fed; the contents of `out` remain valid.
    pub fn feed(&mut self, source: &mut SourceState, chunk: &[u8], out: &mut Vec<u8>) -> ScrapeResult {
        let mut rest = chunk;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            if source.unfinished.is_empty() {
                self.line(source, line, out)?;
            } else {
                let mut whole = std::mem::take(&mut source.unfinished);
                whole.extend_from_slice(line);
                self.line(source, &whole, out)?;
            }
            rest = after;
        }
        if source.unfinished.len() + rest.len() > LINE_LIMIT {
            return Err(RequestFailure::BadBody);
        }
        source.unfinished.extend_from_slice(rest);
        Ok(())
    }

    /// Ends a source. If it was received completely, a last line without a line break counts.
    pub fn finish(&mut self, mut source: SourceState, is_complete: bool, out: &mut Vec<u8>) -> ScrapeResult {
        let last = std::mem::take(&mut source.unfinished);
        let ended = if is_complete && !last.is_empty() { self.line(&mut source, &last, out) } else { Ok(()) };
        ended.and(self.flush_help(&mut source, out))
    }

    fn line(&mut self, source: &mut SourceState, line: &[u8], out: &mut Vec<u8>) -> ScrapeResult {
        let line = std::str::from_utf8(line).map_err(|_| RequestFailure::BadBody)?;
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.len() > LINE_LIMIT || line.contains('\0') {
            return Err(RequestFailure::BadBody);
        }
        match Line::parse(line, source.format).ok_or(RequestFailure::BadBody)? {
            Line::Comment => {}
            Line::Help { family, text } => {
                self.flush_help(source, out)?;
                source.help = Some((family.to_owned(), escaped_help(text, source.format).into_owned()));
            }
            Line::Type { family, name, kind } => {
                source.renamed = Some((family.to_owned(), name.to_string()));
                self.flush_help(source, out)?;
                let is_first = self.families.record_type(&name, kind, &mut source.limit);
                if is_first.ok_or(RequestFailure::TooLarge)? {
                    push(out, &["# TYPE ", &name, " ", kind]);
                } else {
                    self.duplicates += 1;
                }
            }
            Line::Sample(sample) => {
                self.flush_help(source, out)?;
                self.sample(source, &sample, out)?;
            }
        }
        Ok(())
    }

    fn sample(&mut self, source: &mut SourceState, sample: &Sample, out: &mut Vec<u8>) -> ScrapeResult {
        if source.last.0 != sample.name {
            let kind = self.families.record_sample(sample.name, &mut source.limit);
            source.last.1 = kind.ok_or(RequestFailure::TooLarge)?;
            sample.name.clone_into(&mut source.last.0);
        }
        let bound = match source.last.1 {
            Kind::Histogram => sample.labels.le,
            Kind::Summary => sample.labels.quantile,
            Kind::Other => None,
        };
        if !bound.is_none_or(is_value) {
            return Err(RequestFailure::BadBody);
        }
        match &sample.timestamp {
            None => push(out, &[sample.series, " ", sample.value]),
            Some(timestamp) => push(out, &[sample.series, " ", sample.value, " ", timestamp]),
        }
        Ok(())
    }

    fn flush_help(&mut self, source: &mut SourceState, out: &mut Vec<u8>) -> ScrapeResult {
        let Some((family, text)) = source.help.take() else { return Ok(()) };
        let renamed = source.renamed.as_ref().filter(|(before, _)| *before == family);
        let name = renamed.map_or(&family, |(_, name)| name);
        let is_first = self.families.record_help(name, &mut source.limit);
        if is_first.ok_or(RequestFailure::TooLarge)? {
            push(out, &["# HELP ", name, " ", &text]);
        } else {
            self.duplicates += 1;
        }
        Ok(())
    }
}

/// Doubles a backslash that starts no escape sequence, because `expfmt` rejects it, while
/// `textparse` reads it as a backslash. OpenMetrics escapes quotes too.
fn escaped_help(text: &str, format: Format) -> Cow<'_, str> {
    if !text.contains('\\') {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match (char, chars.peek()) {
            ('\\', Some(next @ ('\\' | 'n'))) => {
                escaped.extend(['\\', *next]);
                chars.next();
            }
            ('\\', Some('"')) if format == Format::OpenMetrics => {}
            ('\\', _) => escaped.push_str("\\\\"),
            _ => escaped.push(char),
        }
    }
    escaped.into()
}

fn push(out: &mut Vec<u8>, words: &[&str]) {
    words.iter().for_each(|word| out.extend_from_slice(word.as_bytes()));
    out.push(b'\n');
}

#[cfg(test)]
mod tests;
