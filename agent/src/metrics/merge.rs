//! PURE. Several expositions become one: whole lines, one `HELP` and one `TYPE` for each family, OpenMetrics made into text where that
//! is asked for, `# EOF` at the very end or nowhere.

use std::collections::HashSet;

use super::line::{Line, Sample};

/// The longest line.
const LINE: usize = 64 * 1024;

/// The two formats of Prometheus that are lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' text format 0.0.4.
    Text,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

impl Format {
    /// Content-Type of the whole.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// From a part's Content-Type; without one it is text. `None`: neither.
    pub fn of(content_type: Option<&str>) -> Option<Self> {
        let kind =
            content_type.map_or("text/plain", |text| text.split(';').next().unwrap_or_default().trim());
        match kind {
            _ if kind.eq_ignore_ascii_case("text/plain") => Some(Self::Text),
            _ if kind.eq_ignore_ascii_case("application/openmetrics-text") => Some(Self::OpenMetrics),
            _ => None,
        }
    }
}

/// A part that is no exposition, or not in lines that anybody would write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoExposition;

/// What all parts have in common.
#[derive(Debug)]
pub struct Merge {
    format: Format,
    /// Families that have their `TYPE` or a sample, and those that have their `HELP`.
    typed: HashSet<String>,
    helped: HashSet<String>,
    duplicates: u64,
}

/// One part, line by line. What is fed in comes out as whole lines.
#[derive(Debug)]
pub struct Part {
    from: Format,
    unfinished: Vec<u8>,
    /// A family of OpenMetrics that has another name in text, and that name.
    renamed: Option<(String, String)>,
    /// A `HELP` that waits for its `TYPE`, which may rename the family.
    help: Option<(String, String)>,
    /// The name of the last sample: the next one has the same, mostly.
    last: String,
}

impl Part {
    /// Nothing yet.
    pub fn new(from: Format) -> Self {
        Self { from, unfinished: Vec::new(), renamed: None, help: None, last: String::new() }
    }
}

impl Merge {
    /// Into this format. Text cannot become OpenMetrics.
    pub fn new(format: Format) -> Self {
        Self { format, typed: HashSet::new(), helped: HashSet::new(), duplicates: 0 }
    }

    /// `HELP` and `TYPE` lines that were dropped, since the family had one.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Takes a chunk of `part` and appends what is whole to `out`. After an error nothing more of the part may be fed; what is in `out`
    /// is right.
    pub fn feed(&mut self, part: &mut Part, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), NoExposition> {
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
            return Err(NoExposition);
        }
        part.unfinished.extend_from_slice(rest);
        Ok(())
    }

    /// The part is over. `whole`: it came to its end, so a last line without a line end counts.
    pub fn finish(&mut self, mut part: Part, whole: bool, out: &mut Vec<u8>) -> Result<(), NoExposition> {
        let last = std::mem::take(&mut part.unfinished);
        let ended = if whole && !last.is_empty() { self.line(&mut part, &last, out) } else { Ok(()) };
        self.flush_help(&mut part, out);
        ended
    }

    /// What the whole ends with.
    pub fn end(&self) -> &'static [u8] {
        match self.format {
            Format::Text => b"",
            Format::OpenMetrics => b"# EOF\n",
        }
    }

    fn line(&mut self, part: &mut Part, line: &[u8], out: &mut Vec<u8>) -> Result<(), NoExposition> {
        let text = std::str::from_utf8(line).map_err(|_| NoExposition)?;
        let text = text.strip_suffix('\r').unwrap_or(text);
        if text.len() > LINE || text.contains('\0') {
            return Err(NoExposition);
        }
        let converts = part.from == Format::OpenMetrics && self.format == Format::Text;
        match Line::parse(text).ok_or(NoExposition)? {
            Line::Eof | Line::Comment => {}
            Line::Unit if self.format == Format::Text => {}
            Line::Unit => push(out, text),
            Line::Help { family, text } => {
                self.flush_help(part, out);
                part.help = Some((family.to_owned(), text.to_owned()));
                if !converts || part.renamed.as_ref().is_some_and(|(before, _)| before == family) {
                    self.flush_help(part, out);
                }
            }
            Line::Type { family, kind } => {
                let (name, kind) = if converts { in_text(family, kind) } else { (family.to_owned(), kind) };
                part.renamed = Some((family.to_owned(), name.clone()));
                self.flush_help(part, out);
                if self.typed.insert(name.clone()) {
                    push(out, &format!("# TYPE {name} {kind}"));
                } else {
                    self.duplicates += 1;
                }
            }
            Line::Sample(sample) => {
                self.flush_help(part, out);
                if part.last != sample.name {
                    sample.name.clone_into(&mut part.last);
                    // A `TYPE` behind its samples is as wrong as a second one.
                    self.typed.insert(sample.name.to_owned());
                }
                if converts { push_in_text(out, &sample) } else { push(out, text) }
            }
        }
        Ok(())
    }

    fn flush_help(&mut self, part: &mut Part, out: &mut Vec<u8>) {
        let Some((family, text)) = part.help.take() else { return };
        let renamed =
            part.renamed.as_ref().filter(|(before, _)| *before == family).map(|(_, name)| name.clone());
        let name = renamed.unwrap_or(family);
        if self.helped.insert(name.clone()) {
            push(out, &format!("# HELP {name} {text}"));
        } else {
            self.duplicates += 1;
        }
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

fn push(out: &mut Vec<u8>, line: &str) {
    out.extend_from_slice(line.as_bytes());
    out.push(b'\n');
}

/// Without its exemplar, and with milliseconds for seconds.
fn push_in_text(out: &mut Vec<u8>, sample: &Sample) {
    let seconds = sample.timestamp.and_then(|timestamp| timestamp.parse::<f64>().ok());
    let line = match seconds {
        Some(seconds) => format!("{} {} {:.0}", sample.series, sample.value, seconds * 1000.0),
        None => format!("{} {}", sample.series, sample.value),
    };
    push(out, &line);
}

#[cfg(test)]
mod tests;
