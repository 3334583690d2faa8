//! Parses metric names and the labels of a sample as Prometheus does.

use super::dropped::DropReason;

/// Separators between the tokens of a line.
pub(super) const BLANKS: [char; 2] = [' ', '\t'];
/// Label that tells the series of several targets apart.
pub(super) const TARGET_LABEL: &str = "metrics_target";
/// Number of labels up to which a pairwise comparison is faster than sorting.
const FEW: usize = 16;

/// Validated labels such as `{a="b",le="0.5"}`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Labels<'a> {
    /// Length in bytes, including both braces.
    pub(super) length: usize,
    /// Name of the metric, if it is among the labels as in `{"a.b",c="d"}`, still escaped.
    pub(super) name: Option<&'a str>,
    /// Upper bound of a histogram bucket, still escaped.
    pub(super) le: Option<&'a str>,
    /// Quantile of a summary, still escaped.
    pub(super) quantile: Option<&'a str>,
    /// Number of labels.
    pub(super) count: usize,
    /// True if there is a label [`TARGET_LABEL`].
    pub(super) has_target: bool,
    /// True if a name is valid only in quotes.
    pub(super) needs_quotes: bool,
    /// True if some parsers reject these labels as they are written.
    pub(super) needs_rewrite: bool,
}

/// Element between the braces.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Element<'a> {
    /// Name of the metric, without its quotes.
    Name(&'a str),
    /// Name without quotes and value without quotes, both still escaped.
    Label { name: &'a str, value: &'a str },
}

/// The elements between the braces, which follow the opening brace. After the last element, `rest`
/// begins with the closing brace.
struct Elements<'a> {
    rest: &'a str,
    /// True if an element was in quotes, or if a comma was missing.
    is_unusual: bool,
}

impl<'a> Elements<'a> {
    fn new(text: &'a str) -> Option<Self> {
        Some(Self { rest: skip_blanks(text.strip_prefix('{')?), is_unusual: false })
    }

    fn next(&mut self) -> Option<Result<Element<'a>, DropReason>> {
        (!self.rest.starts_with('}')).then(|| self.parse().ok_or(DropReason::InvalidLabels))
    }

    fn parse(&mut self) -> Option<Element<'a>> {
        let (name, is_quoted, after) = match self.rest.strip_prefix('"') {
            Some(quoted) => quoted_text(quoted).map(|(name, after)| (name, true, after))?,
            None => {
                let name = label_name(self.rest)?;
                (name, false, &self.rest[name.len()..])
            }
        };
        let after = skip_blanks(after);
        let (element, after) = match after.strip_prefix('=') {
            Some(after) => {
                let (value, after) = quoted_text(skip_blanks(after).strip_prefix('"')?)?;
                (Element::Label { name, value }, skip_blanks(after))
            }
            None if is_quoted && after.starts_with([',', '}']) => (Element::Name(name), after),
            None => return None,
        };
        let next = after.strip_prefix(',');
        // Prometheus reads `{a="1" b="2"}` as if there were a comma.
        self.is_unusual |= is_quoted || next.is_none() && !after.starts_with('}');
        self.rest = next.map_or(after, skip_blanks);
        Some(element)
    }

    /// Returns true if the text ends within the quotes of the next element.
    fn is_open(&self) -> bool {
        let after = match self.rest.strip_prefix('"') {
            Some(quoted) => match quoted_text(quoted) {
                Some((_, after)) => after,
                None => return true,
            },
            None => label_name(self.rest).map_or("", |name| &self.rest[name.len()..]),
        };
        let value =
            skip_blanks(after).strip_prefix('=').and_then(|after| skip_blanks(after).strip_prefix('"'));
        value.is_some_and(|value| quoted_text(value).is_none())
    }
}

impl<'a> Labels<'a> {
    /// Parses from the opening brace on; blanks are allowed between tokens, and a comma before the
    /// closing brace.
    pub(super) fn parse(text: &'a str) -> Result<Self, DropReason> {
        let (mut labels, mut names) = (Self::default(), Vec::new());
        let mut elements = Elements::new(text).ok_or(DropReason::InvalidLabels)?;
        while let Some(element) = elements.next() {
            match element? {
                Element::Name(name) => {
                    if name.is_empty() || labels.name.replace(name).is_some() {
                        return Err(DropReason::InvalidName);
                    }
                    labels.needs_quotes |= !is_metric_name(name);
                }
                Element::Label { name, value } => {
                    match name {
                        "" | "__name__" => return Err(DropReason::InvalidLabels),
                        "le" => labels.le = Some(value),
                        "quantile" => labels.quantile = Some(value),
                        TARGET_LABEL => labels.has_target = true,
                        _ => {}
                    }
                    labels.needs_quotes |= !is_label_name(name);
                    labels.needs_rewrite |= has_unknown_escape(value) || value.contains('\n');
                    names.push(name);
                }
            }
        }
        labels.length = text.len() - elements.rest.len() + 1;
        labels.needs_rewrite |= elements.is_unusual;
        labels.count = names.len();
        if are_distinct(names) { Ok(labels) } else { Err(DropReason::DuplicateLabel) }
    }
}

/// Returns the elements of labels that [`Labels::parse`] accepted.
pub(super) fn elements(text: &str) -> impl Iterator<Item = Element<'_>> {
    let mut elements = Elements::new(text);
    std::iter::from_fn(move || elements.as_mut()?.next()?.ok())
}

/// Returns true if the text starts with an opening brace and ends within a quoted name or value.
pub(super) fn are_open(text: &str) -> bool {
    let Some(mut elements) = Elements::new(text) else { return false };
    while let Some(Ok(_)) = elements.next() {}
    elements.is_open()
}

fn skip_blanks(text: &str) -> &str {
    text.trim_start_matches(BLANKS)
}

/// Sorts many labels instead of comparing them pairwise, because the scraped application determines
/// their number.
fn are_distinct(mut names: Vec<&str>) -> bool {
    if names.len() <= FEW {
        return names.iter().enumerate().all(|(index, name)| !names[..index].contains(name));
    }
    names.sort_unstable();
    names.windows(2).all(|pair| pair[0] != pair[1])
}

/// Splits at the closing quote. A quote after a backslash is part of the text.
pub(super) fn quoted_text(text: &str) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    let mut index = 0;
    loop {
        match bytes.get(index)? {
            b'"' => return Some((&text[..index], &text[index + 1..])),
            b'\\' => index += 2,
            _ => index += 1,
        }
    }
}

/// Returns true if a backslash is not followed by a backslash, a quote or `n`. Prometheus reads it
/// as a backslash, and other parsers reject it.
fn has_unknown_escape(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut index = 0;
    while let Some(byte) = bytes.get(index) {
        match (byte, bytes.get(index + 1)) {
            (b'\\', Some(b'\\' | b'"' | b'n')) => index += 2,
            (b'\\', _) => return true,
            _ => index += 1,
        }
    }
    false
}

/// Returns the metric name at the start of `text`.
pub(super) fn metric_name(text: &str) -> Option<&str> {
    name(text, |byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':')
}

/// Returns true if `text` is a metric name that needs no quotes.
pub(super) fn is_metric_name(text: &str) -> bool {
    metric_name(text).is_some_and(|name| name.len() == text.len())
}

/// Returns true if `text` is a label name that needs no quotes.
pub(super) fn is_label_name(text: &str) -> bool {
    label_name(text).is_some_and(|name| name.len() == text.len())
}

fn label_name(text: &str) -> Option<&str> {
    name(text, |byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn name(text: &str, is_name: impl Fn(u8) -> bool) -> Option<&str> {
    let end = text.bytes().position(|byte| !is_name(byte)).unwrap_or(text.len());
    let name = &text[..end];
    (!name.is_empty() && !name.as_bytes()[0].is_ascii_digit()).then_some(name)
}

#[cfg(test)]
mod tests;
