//! Merges several expositions into one in the text format, which has complete lines and one `HELP`
//! and one `TYPE` per family. A line that cannot be part of it is dropped and counted.

use std::borrow::Cow;

use super::dropped::{DropReason, Dropped};
use super::families::{Families, FamilyLimit, Kind, Owner};
use super::labels::is_metric_name;
use super::line::{Format, Line, Sample, is_value};
use super::open_sample::{LINE_LIMIT, OpenSample};
use super::series::{self, Bound, extend, write_family};
use super::{Reader, ScrapeResult};
use address::RequestFailure;

#[derive(Debug, Default)]
pub struct Merge {
    reader: Reader,
    families: Families,
    duplicates: u64,
}

/// State of one source, which is fed in chunks and output in complete lines.
#[derive(Debug)]
pub struct SourceState {
    format: Format,
    limit: FamilyLimit,
    owner: Owner,
    /// Escaped value of the label that tells the series of this source apart.
    target: Option<String>,
    /// Start of a line whose end was not received yet.
    unfinished: Vec<u8>,
    /// True if the start of this line was dropped because it is too long.
    is_too_long: bool,
    /// Number of the last complete line.
    line: u64,
    /// Lines of a sample that does not end before its next line.
    open: Option<OpenSample>,
    /// Family and name of the last `TYPE` line; in OpenMetrics they may differ.
    renamed: Option<(String, String)>,
    /// Pending `HELP` line; the `TYPE` line that follows may rename its family.
    help: Option<(String, String)>,
    /// Name of the last sample and type of its family, which the next sample mostly shares.
    last: (String, Kind),
    has_samples: bool,
    /// True after `# EOF`.
    has_end: bool,
    dropped: Dropped,
}

impl SourceState {
    /// `owner` distinguishes the sources, except those whose series get the label `target`.
    pub fn new(format: Format, limit: FamilyLimit, owner: Owner, target: Option<String>) -> Self {
        Self {
            format,
            limit,
            owner,
            target,
            unfinished: Vec::new(),
            is_too_long: false,
            line: 0,
            open: None,
            renamed: None,
            help: None,
            last: (String::new(), Kind::Other),
            has_samples: false,
            has_end: false,
            dropped: Dropped::default(),
        }
    }

    pub fn dropped(&self) -> &Dropped {
        &self.dropped
    }

    /// Returns whether a source that was received completely is complete. The error is `TooLarge` if
    /// it has too many families, and `BadBody` if it has no valid line, or is OpenMetrics without
    /// `# EOF`.
    pub fn result(&self) -> ScrapeResult {
        let is_garbage = !self.has_samples && self.dropped.total() > 0;
        if self.dropped.has(DropReason::TooManyFamilies) {
            Err(RequestFailure::TooLarge)
        } else if is_garbage || self.lacks_end() {
            Err(RequestFailure::BadBody)
        } else {
            Ok(())
        }
    }

    fn lacks_end(&self) -> bool {
        self.format == Format::OpenMetrics && !self.has_end
    }
}

impl Merge {
    pub fn new(reader: Reader) -> Self {
        Self { reader, ..Self::default() }
    }

    /// Returns the number of `HELP` and `TYPE` lines that were dropped because their family already
    /// had one.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Returns the number of families of which several sources have samples, without a label that
    /// tells the sources apart, and the name of the first one.
    pub fn shared(&self) -> (u64, Option<&str>) {
        self.families.shared()
    }

    /// Parses a chunk of `source` and appends its complete lines to `out`.
    pub fn feed(&mut self, source: &mut SourceState, chunk: &[u8], out: &mut Vec<u8>) {
        let mut rest = chunk;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            if source.unfinished.is_empty() {
                self.line(source, line, out);
            } else {
                let mut whole = std::mem::take(&mut source.unfinished);
                whole.extend_from_slice(line);
                self.line(source, &whole, out);
            }
            rest = after;
        }
        if source.is_too_long || source.unfinished.len() + rest.len() > LINE_LIMIT {
            source.is_too_long = true;
            source.unfinished = Vec::new();
        } else {
            source.unfinished.extend_from_slice(rest);
        }
    }

    /// Ends a source. If it was received completely, a last line without a line break counts, unless
    /// it shows that OpenMetrics is incomplete.
    pub fn finish(&mut self, source: &mut SourceState, is_complete: bool, out: &mut Vec<u8>) {
        let last = std::mem::take(&mut source.unfinished);
        let counts = source.format == Format::Text || source.has_end || last.starts_with(b"# EOF");
        if is_complete && (counts && !last.is_empty() || source.is_too_long) {
            self.line(source, &last, out);
        }
        if let Some(open) = source.open.take() {
            self.drop_open(source, &open, out);
        }
        if let Err(reason) = self.flush_help(source, out) {
            source.dropped.add(reason, source.line);
        }
    }

    fn line(&mut self, source: &mut SourceState, line: &[u8], out: &mut Vec<u8>) {
        source.line += 1;
        let is_too_long = std::mem::take(&mut source.is_too_long) || line.len() > LINE_LIMIT;
        if let Some(open) = source.open.take()
            && self.continues(source, open, (!is_too_long).then_some(line), out)
        {
            return;
        }
        let parsed = if is_too_long { Err(DropReason::TooLong) } else { self.parse(source, line, out) };
        match parsed {
            Ok(()) => {}
            Err(DropReason::InvalidLabels) if source.format == Format::Text && Sample::is_open(line) => {
                source.open = Some(OpenSample::new(line, source.line));
            }
            Err(reason) => source.dropped.add(reason, source.line),
        }
    }

    /// Returns true if `line` is the next line of the open sample. If it is not, or too long (`None`), the
    /// first line of the sample is invalid, and the others are read as lines of their own.
    fn continues(
        &mut self,
        source: &mut SourceState,
        mut open: OpenSample,
        line: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> bool {
        let before = open.len();
        if let Some(line) = line
            && open.push(line)
        {
            if !line.contains(&b'"') || Sample::is_open(open.text()) {
                source.open = Some(open);
                return true;
            }
            if self.parse(source, open.text(), out).is_ok() {
                return true;
            }
            open.truncate(before);
        }
        self.drop_open(source, &open, out);
        false
    }

    fn drop_open(&mut self, source: &mut SourceState, open: &OpenSample, out: &mut Vec<u8>) {
        for (line, number) in open.lines() {
            let is_first = number == open.first;
            let parsed =
                if is_first { Err(DropReason::InvalidLabels) } else { self.parse(source, line, out) };
            if let Err(reason) = parsed {
                source.dropped.add(reason, number);
            }
        }
    }

    fn parse(&mut self, source: &mut SourceState, line: &[u8], out: &mut Vec<u8>) -> Result<(), DropReason> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Ok(line) = std::str::from_utf8(line) else {
            let is_comment = Line::parse(&String::from_utf8_lossy(line), source.format) == Ok(Line::Comment);
            return if is_comment { Ok(()) } else { Err(DropReason::NotUtf8) };
        };
        match Line::parse(line, source.format)? {
            Line::Comment => {}
            Line::Eof => source.has_end = true,
            Line::Help { family, text } => {
                self.flush_help(source, out)?;
                self.check_name(family)?;
                source.help = Some((family.to_owned(), escaped_help(text, source.format).into_owned()));
            }
            Line::Type { family, name, kind } => {
                source.renamed = Some((family.to_owned(), name.to_string()));
                self.flush_help(source, out)?;
                self.check_name(&name)?;
                if self.families.record_type(&name, kind, &mut source.limit)? {
                    push_metadata(out, "TYPE", &name, kind);
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

    fn sample(
        &mut self,
        source: &mut SourceState,
        sample: &Sample,
        out: &mut Vec<u8>,
    ) -> Result<(), DropReason> {
        if sample.labels.needs_quotes && !self.reader.accepts_quoted_names {
            return Err(DropReason::QuotedName);
        }
        if source.last.0 != sample.name {
            source.last.1 = self.families.record_sample(sample.name, source.owner, &mut source.limit)?;
            sample.name.clone_into(&mut source.last.0);
        }
        let bound = Bound::of(sample, source.last.1);
        if !self.reader.is_prometheus && bound.is_some_and(|bound| !is_value(bound.value)) {
            return Err(DropReason::InvalidBound);
        }
        source.has_samples = true;
        series::write(out, sample, bound, source.target.as_deref(), self.reader);
        extend(out, &[" ", sample.value]);
        if let Some(timestamp) = &sample.timestamp {
            extend(out, &[" ", timestamp]);
        }
        out.push(b'\n');
        Ok(())
    }

    fn flush_help(&mut self, source: &mut SourceState, out: &mut Vec<u8>) -> Result<(), DropReason> {
        let Some((family, text)) = source.help.take() else { return Ok(()) };
        let renamed = source.renamed.as_ref().filter(|(before, _)| *before == family);
        let name = renamed.map_or(&family, |(_, name)| name);
        if self.families.record_help(name, &mut source.limit)? {
            push_metadata(out, "HELP", name, &text);
        } else {
            self.duplicates += 1;
        }
        Ok(())
    }

    fn check_name(&self, name: &str) -> Result<(), DropReason> {
        let is_accepted = self.reader.accepts_quoted_names || is_metric_name(name);
        if is_accepted { Ok(()) } else { Err(DropReason::QuotedName) }
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

fn push_metadata(out: &mut Vec<u8>, keyword: &str, name: &str, text: &str) {
    extend(out, &["# ", keyword, " "]);
    write_family(out, name);
    extend(out, &[" ", text, "\n"]);
}

#[cfg(test)]
mod tests;
