//! Parses one line of an exposition, in Prometheus' text format or in OpenMetrics 1.0.0, and
//! converts OpenMetrics to the text format.
//!
//! Two parsers with differences read the text format: `textparse` of Prometheus and `expfmt`, which
//! promtool and others use. A line that `textparse` accepts is valid here. If `expfmt` rejects it,
//! it is written in another form, or dropped if there is none.

use std::borrow::Cow;

use super::dropped::DropReason;
use super::labels::{self, BLANKS, Labels, metric_name, quoted_text};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Text,
    OpenMetrics,
}

impl Format {
    /// Returns the format of a Content-Type. Like Prometheus 2, this is text if the header is
    /// missing or names something else, such as `text/html`. `None` means binary metrics.
    pub(super) fn of(content_type: Option<&str>) -> Option<Self> {
        let kind = content_type.and_then(|text| text.split(';').next()).unwrap_or_default();
        match kind.trim().to_ascii_lowercase().as_str() {
            "application/openmetrics-text" => Some(Self::OpenMetrics),
            "application/vnd.google.protobuf" => None,
            _ => Some(Self::Text),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Line<'a> {
    /// `# HELP family text`. The name is without quotes, here and below.
    Help {
        family: &'a str,
        text: &'a str,
    },
    /// `# TYPE family kind`, where `kind` is a type of the text format.
    Type {
        family: &'a str,
        /// Name of the family in the text format.
        name: Cow<'a, str>,
        kind: &'a str,
    },
    /// `# EOF`, which ends OpenMetrics.
    Eof,
    /// Any other comment, such as `# UNIT`, or an empty line.
    Comment,
    Sample(Sample<'a>),
}

/// Sample of the form `name{label="…"} value timestamp`. Exemplars of OpenMetrics are dropped.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sample<'a> {
    pub(super) name: &'a str,
    /// Name and labels as received.
    pub(super) series: &'a str,
    pub(super) labels: Labels<'a>,
    pub(super) value: &'a str,
    pub(super) timestamp: Option<Cow<'a, str>>,
}

impl<'a> Line<'a> {
    pub(super) fn parse(line: &'a str, format: Format) -> Result<Self, DropReason> {
        let line = line.trim_start_matches(BLANKS);
        let Some(comment) = line.strip_prefix('#') else {
            return if line.is_empty() {
                Ok(Self::Comment)
            } else {
                Sample::parse(line, format).map(Self::Sample)
            };
        };
        // Prometheus treats `#TYPE` without a blank as a comment.
        if !comment.starts_with(BLANKS) {
            return Ok(Self::Comment);
        }
        let comment = comment.trim_start_matches(BLANKS);
        match comment.split_once(BLANKS) {
            Some(("HELP", rest)) => {
                let (family, text) = named(rest).ok_or(DropReason::InvalidName)?;
                Ok(Self::Help { family, text })
            }
            Some(("TYPE", rest)) => {
                let (family, kind) = named(rest).ok_or(DropReason::InvalidName)?;
                let kind = text_type(family, kind.trim_matches(BLANKS), format);
                let (name, kind) = kind.ok_or(DropReason::InvalidType)?;
                Ok(Self::Type { family, name, kind })
            }
            None if comment == "EOF" => Ok(Self::Eof),
            _ => Ok(Self::Comment),
        }
    }
}

/// Returns the name of a family and the text after the blank that follows it.
fn named(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start_matches(BLANKS);
    let (family, rest) = match text.strip_prefix('"') {
        Some(quoted) => quoted_text(quoted).filter(|(family, _)| !family.is_empty())?,
        None => metric_name(text).map(|family| (family, &text[family.len()..]))?,
    };
    (rest.is_empty() || rest.starts_with(BLANKS)).then(|| (family, rest.get(1..).unwrap_or_default()))
}

/// Returns name and type of a family in the text format, in which a family has the name of its
/// samples and four types of OpenMetrics do not exist.
fn text_type<'a>(family: &'a str, kind: &'a str, format: Format) -> Option<(Cow<'a, str>, &'a str)> {
    match (kind, format) {
        ("counter", Format::OpenMetrics) if !family.ends_with("_total") => {
            Some((format!("{family}_total").into(), kind))
        }
        ("counter" | "gauge" | "histogram" | "summary", _) | ("untyped", Format::Text) => {
            Some((family.into(), kind))
        }
        ("info", Format::OpenMetrics) => Some((format!("{family}_info").into(), "gauge")),
        ("stateset", Format::OpenMetrics) => Some((family.into(), "gauge")),
        ("unknown" | "gaugehistogram", Format::OpenMetrics) => Some((family.into(), "untyped")),
        _ => None,
    }
}

impl<'a> Sample<'a> {
    /// Returns true if `text` is the start of a sample that ends within a quoted name or value.
    pub(super) fn is_open(text: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(text) else { return false };
        let text = text.trim_start_matches(BLANKS);
        let name = metric_name(text).unwrap_or_default();
        labels::are_open(text[name.len()..].trim_start_matches(BLANKS))
    }

    fn parse(line: &'a str, format: Format) -> Result<Self, DropReason> {
        let name = metric_name(line).unwrap_or_default();
        let rest = &line[name.len()..];
        let braced = rest.trim_start_matches(BLANKS);
        let (labels, numbers) = if braced.starts_with('{') {
            let labels = Labels::parse(braced)?;
            (labels, &braced[labels.length..])
        } else {
            (Labels::default(), rest)
        };
        let name = match (name, labels.name) {
            ("", Some(name)) => name,
            ("", None) | (_, Some(_)) => return Err(DropReason::InvalidName),
            (name, None) => name,
        };
        // No blank is required after a closing brace.
        if !numbers.starts_with(BLANKS) && labels.length == 0 {
            return Err(DropReason::InvalidName);
        }
        let series = &line[..line.len() - numbers.len()];
        let numbers = match format {
            Format::Text => numbers,
            Format::OpenMetrics => numbers.split_once('#').map_or(numbers, |(before, _exemplar)| before),
        };
        let mut words = numbers.split(BLANKS).filter(|word| !word.is_empty());
        let value = words.next().filter(|word| is_value(word)).ok_or(DropReason::InvalidValue)?;
        let timestamp = match (words.next(), format) {
            (None, _) => None,
            (Some(word), Format::OpenMetrics) => Some(seconds_to_millis(word).map(Cow::from)),
            (Some(word), Format::Text) => Some(is_millis(word).then_some(word.into())),
        };
        let timestamp = timestamp.map(|millis| millis.ok_or(DropReason::InvalidTimestamp)).transpose()?;
        if words.next().is_some() {
            return Err(DropReason::InvalidTimestamp);
        }
        Ok(Self { name, series, labels, value, timestamp })
    }
}

/// Returns true for a valid value: `NaN` without a sign, `Inf` with or without a sign, or a decimal
/// number that is not too large for a float. Prometheus uses Go's `strconv`, which rejects some
/// numbers that Rust accepts.
pub(super) fn is_value(text: &str) -> bool {
    match text.parse::<f64>() {
        Ok(value) if value.is_nan() => !text.starts_with(['+', '-']),
        // Go rejects `1e999` as out of range.
        Ok(value) if value.is_infinite() => !text.bytes().any(|byte| byte.is_ascii_digit()),
        parsed => parsed.is_ok(),
    }
}

/// Returns true for a timestamp of the text format: an integer in milliseconds. Prometheus' parser
/// accepts no sign.
fn is_millis(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<i64>().is_ok()
}

/// Converts a timestamp of OpenMetrics to one of the text format as Prometheus does; `None` if it
/// is out of range.
fn seconds_to_millis(seconds: &str) -> Option<String> {
    // Without a fraction, a negative number close to 0 is `-0`.
    let millis = (seconds.parse::<f64>().ok()? * 1000.0).trunc() + 0.0;
    let millis = format!("{millis:.0}");
    is_millis(&millis).then_some(millis)
}

#[cfg(test)]
mod tests;
