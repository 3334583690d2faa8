//! Parses metric names and the labels of a sample. Only what all of Prometheus' parsers accept is
//! valid.

/// Separators between the tokens of a line.
pub(super) const BLANKS: [char; 2] = [' ', '\t'];
/// Number of labels up to which a pairwise comparison is faster than sorting.
const FEW: usize = 16;

/// Validated labels such as `{a="b",le="0.5"}`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Labels<'a> {
    /// Length in bytes, including both braces.
    pub(super) length: usize,
    /// Upper bound of a histogram bucket, still escaped.
    pub(super) le: Option<&'a str>,
    /// Quantile of a summary, still escaped.
    pub(super) quantile: Option<&'a str>,
}

impl<'a> Labels<'a> {
    /// Parses from the opening brace on; blanks are allowed between tokens, and a comma before the
    /// closing brace. Returns `None` if a parser rejects the labels.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let skip = |rest: &'a str| rest.trim_start_matches(BLANKS);
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

/// Sorts many labels instead of comparing them pairwise, because the scraped application determines
/// their number.
fn are_distinct(mut names: Vec<&str>) -> bool {
    if names.len() <= FEW {
        return names.iter().enumerate().all(|(index, name)| !names[..index].contains(name));
    }
    names.sort_unstable();
    names.windows(2).all(|pair| pair[0] != pair[1])
}

/// Returns the text before the closing quote. A backslash must be followed by a backslash, a quote
/// or `n`.
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

/// Returns the metric name at the start of `text`.
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
