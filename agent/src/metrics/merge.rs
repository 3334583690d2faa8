//! PURE. Several expositions become one: whole lines, one `HELP` and one `TYPE` for each family, OpenMetrics made into text where that
//! is asked for, `# EOF` at the very end or nowhere.

use std::borrow::Cow;

use super::families::{Families, Kind, NoRoom, Room};
use super::format::Format;
use super::line::{Line, Sample};
use super::number::{is_value, millis};

/// The longest line.
const LINE: usize = 64 * 1024;

/// Why a part is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// It is no exposition, or not in lines that anybody would write.
    NoExposition,
    /// It has more families than there is room for.
    TooManyFamilies,
}

impl From<NoRoom> for Cut {
    fn from(_: NoRoom) -> Self {
        Self::TooManyFamilies
    }
}

/// What all parts have in common.
#[derive(Debug)]
pub struct Merge {
    format: Format,
    families: Families,
    duplicates: u64,
}

/// One part, line by line. What is fed in comes out as whole lines.
#[derive(Debug)]
pub struct Part {
    from: Format,
    room: Room,
    unfinished: Vec<u8>,
    /// A family of OpenMetrics that has another name in text, and that name.
    renamed: Option<(String, String)>,
    /// A `HELP` that waits for its `TYPE`, which may rename the family.
    help: Option<(String, String)>,
    /// The name of the last sample and its family's kind: the next one has the same, mostly.
    last: (String, Kind),
    /// `# EOF` was there.
    ended: bool,
}

impl Part {
    /// Nothing yet. `room`: for families of its own.
    pub fn new(from: Format, room: Room) -> Self {
        let last = (String::new(), Kind::Other);
        Self { from, room, unfinished: Vec::new(), renamed: None, help: None, last, ended: false }
    }
}

impl Merge {
    /// Into this format. Text cannot become OpenMetrics.
    pub fn new(format: Format) -> Self {
        Self { format, families: Families::default(), duplicates: 0 }
    }

    /// `HELP` and `TYPE` lines that were dropped, since the family had one.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Takes a chunk of `part` and appends what is whole to `out`. After an error nothing more of the part may be fed; what is in `out`
    /// is right.
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

    /// The part is over. `whole`: it came to its end, so a last line without a line end counts, and OpenMetrics has its `# EOF`.
    pub fn finish(&mut self, mut part: Part, whole: bool, out: &mut Vec<u8>) -> Result<(), Cut> {
        let last = std::mem::take(&mut part.unfinished);
        let ended = if whole && !last.is_empty() { self.line(&mut part, &last, out) } else { Ok(()) };
        let flushed = self.flush_help(&mut part, out);
        if whole && part.from == Format::OpenMetrics && !part.ended {
            return ended.and(Err(Cut::NoExposition));
        }
        ended.and(flushed)
    }

    /// What the whole ends with.
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

/// Name and type of a family in text. There a family is called as its samples are, and four types are unknown.
fn in_text<'a>(family: &str, kind: &'a str) -> (String, &'a str) {
    match kind {
        "counter" if !family.ends_with("_total") => (format!("{family}_total"), kind),
        "info" => (format!("{family}_info"), "gauge"),
        "stateset" => (family.to_owned(), "gauge"),
        "unknown" | "gaugehistogram" => (family.to_owned(), "untyped"),
        _ => (family.to_owned(), kind),
    }
}

/// A backslash that stands for nothing in text is doubled: `expfmt` would refuse it, `textparse` takes it for itself. OpenMetrics
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
