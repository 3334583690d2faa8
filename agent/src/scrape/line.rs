//! Parses one line of an exposition, in Prometheus' text format 0.0.4 or in OpenMetrics 1.0.0, and
//! converts OpenMetrics to the text format.
//!
//! Two parsers with differences read the text format: `textparse` of Prometheus and `expfmt`, which
//! promtool and others use. A line is valid only if both accept it, because a parser that rejects
//! one line rejects the whole response. Names in quotes belong to a later format and are invalid
//! here.

use std::borrow::Cow;

use super::labels::{BLANKS, Labels, metric_name};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Text,
    OpenMetrics,
}

impl Format {
    /// Returns the format of a Content-Type; without a Content-Type it is text. `None` means that
    /// the format is not supported.
    pub(super) fn of(content_type: Option<&str>) -> Option<Self> {
        let kind = content_type.map_or("text/plain", |text| text.split(';').next().unwrap_or_default());
        match kind.trim().to_ascii_lowercase().as_str() {
            "text/plain" => Some(Self::Text),
            "application/openmetrics-text" => Some(Self::OpenMetrics),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Line<'a> {
    /// `# HELP family text`.
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
    /// Any other comment, such as `# UNIT` and `# EOF`, or an empty line.
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
    pub(super) fn parse(line: &'a str, format: Format) -> Option<Self> {
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
        match comment.trim_start_matches(BLANKS).split_once(BLANKS) {
            Some(("HELP", rest)) => named(rest).map(|(family, text)| Self::Help { family, text }),
            Some(("TYPE", rest)) => {
                let (family, kind) = named(rest)?;
                let (name, kind) = text_type(family, kind.trim_end_matches(BLANKS), format)?;
                Some(Self::Type { family, name, kind })
            }
            _ => Some(Self::Comment),
        }
    }
}

fn named(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start_matches(BLANKS);
    let family = metric_name(text)?;
    let rest = &text[family.len()..];
    (rest.is_empty() || rest.starts_with(BLANKS)).then_some((family, rest.trim_start_matches(BLANKS)))
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
    fn parse(line: &'a str, format: Format) -> Option<Self> {
        let name = metric_name(line)?;
        let rest = &line[name.len()..];
        let braced = rest.trim_start_matches(BLANKS);
        let (labels, numbers) = if braced.starts_with('{') {
            let labels = Labels::parse(braced)?;
            (labels, &braced[labels.length..])
        } else {
            (Labels::default(), rest)
        };
        // No blank is required after a closing brace.
        if !numbers.starts_with(BLANKS) && labels.length == 0 {
            return None;
        }
        let series = &line[..line.len() - numbers.len()];
        let numbers = match format {
            Format::Text => numbers,
            Format::OpenMetrics => numbers.split_once('#').map_or(numbers, |(before, _exemplar)| before),
        };
        let mut words = numbers.split(BLANKS).filter(|word| !word.is_empty());
        let value = words.next().filter(|word| is_value(word))?;
        let timestamp = match words.next() {
            None => None,
            Some(word) if format == Format::OpenMetrics => Some(seconds_to_millis(word)?.into()),
            Some(word) => Some(is_millis(word).then_some(word)?.into()),
        };
        words.next().is_none().then_some(Self { name, series, labels, value, timestamp })
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

/// Converts a timestamp of OpenMetrics to one of the text format; `None` if it is out of range.
fn seconds_to_millis(seconds: &str) -> Option<String> {
    let millis = format!("{:.0}", seconds.parse::<f64>().ok()? * 1000.0);
    is_millis(&millis).then_some(millis)
}

#[cfg(test)]
mod tests;
