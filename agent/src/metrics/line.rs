//! PURE. One line of an exposition, in Prometheus' text format 0.0.4 or in OpenMetrics 1.0.0.
//!
//! Text is read by two parsers that differ: `textparse` of Prometheus and `expfmt`, which promtool and others use. A line is one only
//! if both take it, since whoever refuses one line refuses the whole. Names in quotes are a later format's.

use super::format::Format;
use super::labels::{BLANKS, Labels, metric_name};
use super::number::{is_millis, is_seconds, is_value};

/// What a line is.
#[derive(Debug, Clone, PartialEq)]
pub enum Line<'a> {
    /// `# HELP family text`.
    Help { family: &'a str, text: &'a str },
    /// `# TYPE family kind`; `kind` is one of the format's.
    Type { family: &'a str, kind: &'a str },
    /// `# UNIT family unit`; the family's name ends in the unit. In text it is a comment.
    Unit { family: &'a str, unit: &'a str },
    /// `# EOF`. In text it is a comment.
    Eof,
    /// Another comment, or nothing.
    Comment,
    /// A value.
    Sample(Sample<'a>),
}

/// `name{label="…"} value timestamp # exemplar`.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample<'a> {
    /// Without labels.
    pub name: &'a str,
    /// Name and labels, as they were written.
    pub series: &'a str,
    /// Those that have a meaning.
    pub labels: Labels<'a>,
    /// A number, as it was written.
    pub value: &'a str,
    /// Milliseconds in text, seconds in OpenMetrics, as they were written.
    pub timestamp: Option<&'a str>,
    /// `{label="…"} value timestamp`, of OpenMetrics alone.
    pub exemplar: Option<&'a str>,
}

impl<'a> Line<'a> {
    /// `None`: no line of this format.
    pub fn parse(line: &'a str, format: Format) -> Option<Self> {
        let Some(comment) = line.strip_prefix('#') else {
            return if line.trim_start_matches(BLANKS).is_empty() {
                Some(Self::Comment)
            } else {
                Sample::parse(line, format).map(Self::Sample)
            };
        };
        // `#TYPE` without a blank is a comment for Prometheus.
        if !comment.starts_with(BLANKS) {
            return Some(Self::Comment);
        }
        let comment = comment.trim_start_matches(BLANKS);
        let Some((keyword, rest)) = comment.split_once(BLANKS) else {
            let is_end = format == Format::OpenMetrics && comment == "EOF";
            return Some(if is_end { Self::Eof } else { Self::Comment });
        };
        match keyword {
            "HELP" => named(rest).map(|(family, text)| Self::Help { family, text }),
            "TYPE" => {
                let (family, kind) = named(rest)?;
                let kind = kind.trim_end_matches(BLANKS);
                is_kind(kind, format).then_some(Self::Type { family, kind })
            }
            "UNIT" if format == Format::OpenMetrics => {
                let (family, unit) = named(rest)?;
                let before = family.strip_suffix(unit)?;
                (unit.is_empty() || before.ends_with('_')).then_some(Self::Unit { family, unit })
            }
            _ => Some(Self::Comment),
        }
    }
}

/// A family's name, and what follows it.
fn named(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start_matches(BLANKS);
    let family = metric_name(text)?;
    let rest = &text[family.len()..];
    (rest.is_empty() || rest.starts_with(BLANKS)).then_some((family, rest.trim_start_matches(BLANKS)))
}

fn is_kind(kind: &str, format: Format) -> bool {
    match kind {
        "counter" | "gauge" | "histogram" | "summary" => true,
        "untyped" => format == Format::Text,
        "unknown" | "info" | "stateset" | "gaugehistogram" => format == Format::OpenMetrics,
        _ => false,
    }
}

impl<'a> Sample<'a> {
    fn parse(line: &'a str, format: Format) -> Option<Self> {
        let name = metric_name(line)?;
        let rest = &line[name.len()..];
        let braced = if format == Format::Text { rest.trim_start_matches(BLANKS) } else { rest };
        let (labels, numbers) = if braced.starts_with('{') {
            let labels = Labels::parse(braced, format)?;
            (labels, &braced[labels.length..])
        } else {
            (Labels::default(), rest)
        };
        // Behind a brace text needs no blank.
        if !numbers.starts_with(BLANKS) && (format == Format::OpenMetrics || labels.length == 0) {
            return None;
        }
        let series = &line[..line.len() - numbers.len()];
        let (value, rest) = word(numbers);
        let (timestamp, exemplar) = match format {
            Format::Text => (rest, None),
            Format::OpenMetrics => match rest.split_once('#') {
                Some((timestamp, exemplar)) => (timestamp, Some(exemplar_of(exemplar)?)),
                None => (rest, None),
            },
        };
        let timestamp = optional(timestamp, if format == Format::Text { is_millis } else { is_seconds })?;
        is_value(value).then_some(Self { name, series, labels, value, timestamp, exemplar })
    }
}

/// The first word, and what follows it; neither begins with a blank.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start_matches(BLANKS);
    let (word, rest) = text.split_at(text.find(BLANKS).unwrap_or(text.len()));
    (word, rest.trim_start_matches(BLANKS))
}

/// A last word that there may be. `None`: it is not what it should be, or not the last.
fn optional(text: &str, is_good: fn(&str) -> bool) -> Option<Option<&str>> {
    match word(text) {
        ("", "") => Some(None),
        (word, "") if is_good(word) => Some(Some(word)),
        _ => None,
    }
}

/// What stands behind the sharp, checked.
fn exemplar_of(text: &str) -> Option<&str> {
    let exemplar = text.strip_prefix(' ')?.trim_end_matches(' ');
    let rest = &exemplar[Labels::parse(exemplar, Format::OpenMetrics)?.length..];
    let mut numbers = rest.strip_prefix(' ')?.split(' ');
    let is_good = numbers.next().is_some_and(is_value) && numbers.next().is_none_or(is_seconds);
    (is_good && numbers.next().is_none()).then_some(exemplar)
}

#[cfg(test)]
mod tests;
