//! PURE. The labels of a sample, and names: what all parsers of Prometheus agree on, no more.

use super::format::Format;

/// Between the words of a line.
pub(super) const BLANKS: [char; 2] = [' ', '\t'];
/// Up to so many labels comparing each with each is quicker than sorting.
const FEW: usize = 16;

/// `{a="b",le="0.5"}`, checked.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Labels<'a> {
    /// Length in bytes, with both braces.
    pub length: usize,
    /// Upper bound of a histogram's bucket, still escaped.
    pub le: Option<&'a str>,
    /// Of a summary, still escaped.
    pub quantile: Option<&'a str>,
}

impl<'a> Labels<'a> {
    /// From the brace on. `None`: something that a parser refuses. Text may hold blanks between its signs, OpenMetrics may not.
    /// A comma may stand before the closing brace.
    pub(super) fn parse(text: &'a str, format: Format) -> Option<Self> {
        let skip =
            |rest: &'a str| if format == Format::Text { rest.trim_start_matches(BLANKS) } else { rest };
        let (mut labels, mut names) = (Self::default(), Vec::new());
        let mut rest = skip(text.strip_prefix('{')?);
        while !rest.starts_with('}') {
            let name = label_name(rest)?;
            rest = skip(skip(&rest[name.len()..]).strip_prefix('=')?).strip_prefix('"')?;
            let value = value(rest)?;
            match name {
                "__name__" => return None,
                "le" => labels.le = Some(value),
                "quantile" => labels.quantile = Some(value),
                _ => {}
            }
            names.push(name);
            rest = skip(&rest[value.len() + 1..]);
            match rest.strip_prefix(',') {
                Some(after) => rest = skip(after),
                None if rest.starts_with('}') => {}
                None => return None,
            }
        }
        labels.length = text.len() - rest.len() + 1;
        are_distinct(names).then_some(labels)
    }
}

/// A caller chooses how many there are.
fn are_distinct(mut names: Vec<&str>) -> bool {
    if names.len() <= FEW {
        return names.iter().enumerate().all(|(index, name)| !names[..index].contains(name));
    }
    names.sort_unstable();
    names.windows(2).all(|pair| pair[0] != pair[1])
}

/// What stands before the quote that closes; a backslash stands before another one, a quote or an `n`.
fn value(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let mut index = 0;
    loop {
        match bytes.get(index)? {
            b'"' => return Some(&text[..index]),
            b'\\' if !matches!(bytes.get(index + 1)?, b'\\' | b'"' | b'n') => return None,
            b'\\' => index += 2,
            _ => index += 1,
        }
    }
}

/// The name of a metric that `text` begins with.
pub(super) fn metric_name(text: &str) -> Option<&str> {
    name(text, |byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':')
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
