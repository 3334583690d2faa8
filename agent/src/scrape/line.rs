//! Parses one line of an exposition, in Prometheus' text format 0.0.4 or in OpenMetrics 1.0.0.
//!
//! Two parsers with differences read the text format: `textparse` of Prometheus and `expfmt`, which
//! promtool and others use. A line is valid only if both accept it, because a parser that rejects
//! one line rejects the whole response. Names in quotes belong to a later format and are invalid
//! here.

use super::format::Format;
use super::labels::{BLANKS, Labels, metric_name};
use super::number::{is_millis, is_seconds, is_value};

#[derive(Debug, Clone, PartialEq)]
pub enum Line<'a> {
    /// `# HELP family text`.
    Help {
        family: &'a str,
        text: &'a str,
    },
    /// `# TYPE family kind`, where `kind` is a type of the format.
    Type {
        family: &'a str,
        kind: &'a str,
    },
    /// `# UNIT family unit`, where the name of the family ends in the unit. In the text format it
    /// is a comment.
    Unit {
        family: &'a str,
        unit: &'a str,
    },
    /// `# EOF`, which is a comment in the text format.
    Eof,
    /// Any other comment, or an empty line.
    Comment,
    Sample(Sample<'a>),
}

/// Sample of the form `name{label="…"} value timestamp # exemplar`.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample<'a> {
    /// Metric name without labels.
    pub name: &'a str,
    /// Name and labels as received.
    pub series: &'a str,
    pub labels: Labels<'a>,
    pub value: &'a str,
    /// Milliseconds in the text format, seconds in OpenMetrics.
    pub timestamp: Option<&'a str>,
    /// Exemplar `{label="…"} value timestamp`, which only OpenMetrics has.
    pub exemplar: Option<&'a str>,
}

impl<'a> Line<'a> {
    /// Returns `None` if the line is invalid in this format.
    pub fn parse(line: &'a str, format: Format) -> Option<Self> {
        let Some(comment) = line.strip_prefix('#') else {
            return if line.trim_start_matches(BLANKS).is_empty() {
                Some(Self::Comment)
            } else {
                Sample::parse(line, format).map(Self::Sample)
            };
        };
        // Prometheus treats `#TYPE` without a blank as a comment.
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

/// Splits off the name of the family.
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
        // In the text format no blank is required after a closing brace.
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

/// Returns the first word and the rest, both without leading blanks.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start_matches(BLANKS);
    let (word, rest) = text.split_at(text.find(BLANKS).unwrap_or(text.len()));
    (word, rest.trim_start_matches(BLANKS))
}

/// Parses an optional last word. Returns `None` if the word is invalid or is not the last one.
fn optional(text: &str, is_good: fn(&str) -> bool) -> Option<Option<&str>> {
    match word(text) {
        ("", "") => Some(None),
        (word, "") if is_good(word) => Some(Some(word)),
        _ => None,
    }
}

/// Validates the text after `#`.
fn exemplar_of(text: &str) -> Option<&str> {
    let exemplar = text.strip_prefix(' ')?.trim_end_matches(' ');
    let rest = &exemplar[Labels::parse(exemplar, Format::OpenMetrics)?.length..];
    let mut numbers = rest.strip_prefix(' ')?.split(' ');
    let is_good = numbers.next().is_some_and(is_value) && numbers.next().is_none_or(is_seconds);
    (is_good && numbers.next().is_none()).then_some(exemplar)
}

#[cfg(test)]
mod tests;
