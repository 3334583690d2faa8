//! Merges several expositions into one that has complete lines, one `HELP` and one `TYPE` per
//! family, and in OpenMetrics one `# EOF` at the end. Sources in OpenMetrics are converted to the
//! text format if necessary.

use std::borrow::Cow;

use super::families::{Families, Kind, NoRoom, Room};
use super::format::Format;
use super::line::{Line, Sample};
use super::number::{is_value, millis};

/// Maximum length of a line in bytes.
const LINE: usize = 64 * 1024;

/// Reason why a source is truncated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The source is not an exposition, or a line is too long.
    NoExposition,
    /// The source has more families than its limit.
    TooManyFamilies,
}

impl From<NoRoom> for Cut {
    fn from(_: NoRoom) -> Self {
        Self::TooManyFamilies
    }
}

/// State that all sources of a merge share.
#[derive(Debug)]
pub struct Merge {
    format: Format,
    families: Families,
    duplicates: u64,
}

/// State of one source, which is fed in chunks and output in complete lines.
#[derive(Debug)]
pub struct Part {
    from: Format,
    room: Room,
    unfinished: Vec<u8>,
    /// Family of OpenMetrics that has another name in the text format, and that name.
    renamed: Option<(String, String)>,
    /// Pending `HELP` line; the `TYPE` line that follows may rename its family.
    help: Option<(String, String)>,
    /// Name of the last sample and type of its family, which the next sample mostly shares.
    last: (String, Kind),
    /// True after `# EOF`.
    ended: bool,
}

impl Part {
    /// Creates a source that may add families up to `room`.
    pub fn new(from: Format, room: Room) -> Self {
        let last = (String::new(), Kind::Other);
        Self { from, room, unfinished: Vec::new(), renamed: None, help: None, last, ended: false }
    }
}

impl Merge {
    /// Creates a merge into `format`. Text cannot be converted to OpenMetrics.
    pub fn new(format: Format) -> Self {
        Self { format, families: Families::default(), duplicates: 0 }
    }

    /// Returns the number of `HELP` and `TYPE` lines that were dropped because their family already
    /// had one.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Parses a chunk of `part` and appends its complete lines to `out`. After an error no more
    /// chunks of this source may be fed; the contents of `out` remain valid.
    pub fn feed(&mut self, part: &mut Part, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), Cut> {
        let mut rest = chunk;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            if part.unfinished.is_empty() {
                self.line(part, line, out)?;
            } else {
                let mut whole = std::mem::take(&mut part.unfinished);
                whole.extend_from_slice(line);
                self.line(part, &whole, out)?;
                whole.clear();
                part.unfinished = whole;
            }
            rest = after;
        }
        if part.unfinished.len() + rest.len() > LINE {
            return Err(Cut::NoExposition);
        }
        part.unfinished.extend_from_slice(rest);
        Ok(())
    }

    /// Ends a source. `whole` means that it was received completely: a last line without a line
    /// break counts, and OpenMetrics must have ended with `# EOF`.
    pub fn finish(&mut self, mut part: Part, whole: bool, out: &mut Vec<u8>) -> Result<(), Cut> {
        let last = std::mem::take(&mut part.unfinished);
        let ended = if whole && !last.is_empty() { self.line(&mut part, &last, out) } else { Ok(()) };
        let flushed = self.flush_help(&mut part, out);
        if whole && part.from == Format::OpenMetrics && !part.ended {
            return ended.and(Err(Cut::NoExposition));
        }
        ended.and(flushed)
    }

    /// Returns the end of the merged exposition.
    pub fn end(&self) -> &'static [u8] {
        match self.format {
            Format::Text => b"",
            Format::OpenMetrics => b"# EOF\n",
        }
    }

    fn line(&mut self, part: &mut Part, line: &[u8], out: &mut Vec<u8>) -> Result<(), Cut> {
        let text = std::str::from_utf8(line).map_err(|_| Cut::NoExposition)?;
        let text = text.strip_suffix('\r').unwrap_or(text);
        if text.len() > LINE || text.contains('\0') || part.ended {
            return Err(Cut::NoExposition);
        }
        let converts = part.from == Format::OpenMetrics && self.format == Format::Text;
        match Line::parse(text, part.from).ok_or(Cut::NoExposition)? {
            Line::Eof => part.ended = true,
            Line::Comment => {}
            Line::Unit { .. } if self.format == Format::Text => {}
            Line::Unit { family, unit } => push(out, &["# UNIT ", family, " ", unit]),
            Line::Help { family, text } => {
                self.flush_help(part, out)?;
                let text =
                    if self.format == Format::Text { help_in_text(text, part.from) } else { text.into() };
                part.help = Some((family.to_owned(), text.into_owned()));
                if !converts || part.renamed.as_ref().is_some_and(|(before, _)| before == family) {
                    self.flush_help(part, out)?;
                }
            }
            Line::Type { family, kind } => {
                let (name, kind) = if converts { in_text(family, kind) } else { (family.to_owned(), kind) };
                part.renamed = Some((family.to_owned(), name.clone()));
                self.flush_help(part, out)?;
                if self.families.announce(&name, kind, &mut part.room)? {
                    push(out, &["# TYPE ", &name, " ", kind]);
                } else {
                    self.duplicates += 1;
                }
            }
            Line::Sample(sample) => {
                self.flush_help(part, out)?;
                self.sample(part, &sample, converts, out)?;
            }
        }
        Ok(())
    }

    fn sample(
        &mut self,
        part: &mut Part,
        sample: &Sample,
        converts: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Cut> {
        if part.last.0 != sample.name {
            part.last.1 = self.families.sample(sample.name, &mut part.room)?;
            sample.name.clone_into(&mut part.last.0);
        }
        let bound = match part.last.1 {
            Kind::Histogram => sample.labels.le,
            Kind::Summary => sample.labels.quantile,
            Kind::Other => None,
        };
        if !bound.is_none_or(is_value) {
            return Err(Cut::NoExposition);
        }
        let Sample { series, value, .. } = sample;
        match (sample.timestamp, sample.exemplar) {
            (None, None) => push(out, &[series, " ", value]),
            (None, Some(_)) if converts => push(out, &[series, " ", value]),
            (Some(seconds), _) if converts => {
                let millis = millis(seconds).ok_or(Cut::NoExposition)?;
                push(out, &[series, " ", value, " ", &millis.to_string()]);
            }
            (Some(timestamp), None) => push(out, &[series, " ", value, " ", timestamp]),
            (None, Some(exemplar)) => push(out, &[series, " ", value, " # ", exemplar]),
            (Some(timestamp), Some(exemplar)) => {
                push(out, &[series, " ", value, " ", timestamp, " # ", exemplar]);
            }
        }
        Ok(())
    }

    fn flush_help(&mut self, part: &mut Part, out: &mut Vec<u8>) -> Result<(), Cut> {
        let Some((family, text)) = part.help.take() else { return Ok(()) };
        let renamed = part.renamed.as_ref().filter(|(before, _)| *before == family).map(|(_, name)| name);
        let name = renamed.unwrap_or(&family);
        if self.families.help(name, &mut part.room)? {
            push(out, &["# HELP ", name, " ", &text]);
        } else {
            self.duplicates += 1;
        }
        Ok(())
    }
}

/// Returns name and type of a family in the text format, in which a family has the name of its
/// samples and four of the types do not exist.
fn in_text<'a>(family: &str, kind: &'a str) -> (String, &'a str) {
    match kind {
        "counter" if !family.ends_with("_total") => (format!("{family}_total"), kind),
        "info" => (format!("{family}_info"), "gauge"),
        "stateset" => (family.to_owned(), "gauge"),
        "unknown" | "gaugehistogram" => (family.to_owned(), "untyped"),
        _ => (family.to_owned(), kind),
    }
}

/// Converts a `HELP` text to the text format. A backslash that starts no escape sequence is
/// doubled, because `expfmt` rejects it, while `textparse` reads it as a backslash. OpenMetrics
/// escapes quotes too.
fn help_in_text(text: &str, from: Format) -> Cow<'_, str> {
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
            ('\\', Some('"')) if from == Format::OpenMetrics => {}
            ('\\', _) => escaped.push_str("\\\\"),
            _ => escaped.push(char),
        }
    }
    escaped.into()
}

fn push(out: &mut Vec<u8>, words: &[&str]) {
    for word in words {
        out.extend_from_slice(word.as_bytes());
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests;
