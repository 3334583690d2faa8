//! Writes the name and the labels of a sample for the scraper.

use super::families::Kind;
use super::labels::{Element, TARGET_LABEL, elements, is_label_name, is_metric_name};
use super::line::Sample;
use super::{Reader, bound};

/// Label of a series that is a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bound<'a> {
    name: &'static str,
    /// Value, still escaped.
    pub(super) value: &'a str,
}

impl<'a> Bound<'a> {
    /// Returns the label of the sample that is a number because of the type of its family.
    pub(super) fn of(sample: &Sample<'a>, kind: Kind) -> Option<Self> {
        let (name, value) = match kind {
            Kind::Histogram => ("le", sample.labels.le),
            Kind::Summary => ("quantile", sample.labels.quantile),
            Kind::Other => return None,
        };
        value.map(|value| Self { name, value })
    }
}

/// Appends the series. `target` is the escaped value of the label that is added, unless the source
/// has set this label itself.
pub(super) fn write(
    out: &mut Vec<u8>,
    sample: &Sample,
    bound: Option<Bound>,
    target: Option<&str>,
    reader: Reader,
) {
    let target = target.filter(|_| !sample.labels.has_target);
    let normalized = bound.filter(|_| reader.normalizes_bounds).and_then(|bound| {
        let normalized = bound::normalized(bound.value)?;
        (normalized != bound.value).then_some((bound.name, normalized))
    });
    let is_simple = !sample.labels.needs_rewrite && normalized.is_none();
    match target {
        None if is_simple => extend(out, &[sample.series]),
        Some(target) if is_simple && sample.labels.count > 0 => {
            let labels = &sample.series[sample.series.len() - sample.labels.length + 1..];
            extend(out, &[sample.name, "{", TARGET_LABEL, "=\"", target, "\",", labels]);
        }
        _ => rewrite(out, sample, target, normalized.as_ref().map(|(name, value)| (*name, value.as_str()))),
    }
}

fn rewrite(out: &mut Vec<u8>, sample: &Sample, target: Option<&str>, normalized: Option<(&str, &str)>) {
    let mut before = if is_metric_name(sample.name) {
        extend(out, &[sample.name]);
        "{"
    } else {
        out.push(b'{');
        write_name(out, sample.name);
        ","
    };
    let mut is_open = before == ",";
    if let Some(target) = target {
        extend(out, &[before, TARGET_LABEL, "=\"", target, "\""]);
        (before, is_open) = (",", true);
    }
    let labels = &sample.series[sample.series.len() - sample.labels.length..];
    for element in elements(labels) {
        let Element::Label { name, value } = element else { continue };
        extend(out, &[before]);
        (before, is_open) = (",", true);
        if is_label_name(name) {
            extend(out, &[name])
        } else {
            write_name(out, name)
        }
        extend(out, &["=\""]);
        match normalized.filter(|(bound, _)| *bound == name) {
            Some((_, normalized)) => extend(out, &[normalized]),
            None => write_escaped(out, value),
        }
        out.push(b'"');
    }
    if is_open {
        out.push(b'}');
    }
}

/// Appends a name, in quotes if it needs them. Metric names may contain colons.
pub(super) fn write_family(out: &mut Vec<u8>, name: &str) {
    if is_metric_name(name) { extend(out, &[name]) } else { write_name(out, name) }
}

fn write_name(out: &mut Vec<u8>, name: &str) {
    out.push(b'"');
    write_escaped(out, name);
    out.push(b'"');
}

/// Appends escaped text. A backslash that starts no escape sequence is doubled, and a line break is
/// escaped: Prometheus reads them as what they are, and other parsers reject them.
fn write_escaped(out: &mut Vec<u8>, text: &str) {
    let mut rest = text;
    while let Some(position) = rest.find(['\\', '\n']) {
        let (before, found) = rest.split_at(position);
        extend(out, &[before]);
        let (escaped, length) = match found.as_bytes() {
            [b'\n', ..] => ("\\n", 1),
            [b'\\', b'\\' | b'"' | b'n', ..] => (&found[..2], 2),
            _ => ("\\\\", 1),
        };
        extend(out, &[escaped]);
        rest = &found[length..];
    }
    extend(out, &[rest]);
}

pub(super) fn extend(out: &mut Vec<u8>, words: &[&str]) {
    words.iter().for_each(|word| out.extend_from_slice(word.as_bytes()));
}

#[cfg(test)]
mod tests;
