//! Indents lines of quoted scalars that newer versions of YAML want to be indented, and kubectl does not.
//! Istio's definitions of CRDs, for example, contain hundreds of them.

use std::borrow::Cow;

use super::YamlError;

/// The parser's reason for refusing such a line.
const REASON: &str = "invalid indentation in multiline quoted scalar";
/// How many bytes of a stream may be parsed again, one time for each scalar.
const REPEATED: usize = 256 << 20;

/// The bytes that may still be parsed again.
#[derive(Debug)]
pub(crate) struct Repeats(usize);

impl Default for Repeats {
    fn default() -> Self {
        Self(REPEATED)
    }
}

/// Parses a text, and indents the lines that the parser refuses for their indentation. The white space
/// at the start of a line is not a part of a quoted scalar, so the value is the same. Returns also the
/// text that was parsed.
pub(super) fn parse<'a, T>(
    text: &'a str,
    repeats: &mut Repeats,
    parse: impl Fn(&str) -> Result<T, YamlError>,
) -> (Cow<'a, str>, Result<T, YamlError>) {
    let mut text = Cow::Borrowed(text);
    let mut first: Option<YamlError> = None;
    let mut indented_line = 0;
    loop {
        let error = match parse(&text) {
            Err(error) if error.reason == REASON => error,
            result => return (text, result),
        };
        // The last line may not exist: the end of an unclosed scalar.
        let is_new = error.line > indented_line && text.lines().count() as u64 >= error.line;
        let rest = repeats.0.checked_sub(text.len()).filter(|_| is_new);
        indented_line = error.line;
        let first = first.get_or_insert(error);
        let Some(rest) = rest else { return (text, Err(first.clone())) };
        repeats.0 = rest;
        text = Cow::Owned(indented(&text, indented_line));
    }
}

/// Indents a line that continues a quoted scalar, and those after it that surely do: a scalar does not
/// end in a line without quotes.
fn indented(text: &str, from: u64) -> String {
    let width = text.lines().map(|line| line.len() - line.trim_start_matches([' ', '-', '?']).len()).max();
    let spaces = " ".repeat(width.unwrap_or_default() + 1);
    let mut is_inside = false;
    let mut result = String::with_capacity(text.len() + 64 * spaces.len());
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        is_inside |= number == from;
        if is_inside && !line.trim().is_empty() {
            result.push_str(&spaces);
        }
        result.push_str(line);
        is_inside &= !line.contains(['\'', '"']);
    }
    result
}

#[cfg(test)]
mod tests;
