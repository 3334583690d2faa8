//! PURE. One line of an exposition, in Prometheus' text format 0.0.4 or in OpenMetrics 1.0.0.

/// What a line is.
#[derive(Debug, Clone, PartialEq)]
pub enum Line<'a> {
    /// `# HELP family text`.
    Help { family: &'a str, text: &'a str },
    /// `# TYPE family kind`.
    Type { family: &'a str, kind: &'a str },
    /// `# UNIT family unit`.
    Unit,
    /// `# EOF`.
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
    /// A number, as it was written.
    pub value: &'a str,
    /// A number, as it was written.
    pub timestamp: Option<&'a str>,
}

impl<'a> Line<'a> {
    /// `None`: no line of an exposition.
    pub fn parse(line: &'a str) -> Option<Self> {
        let Some(comment) = line.strip_prefix('#') else {
            return if line.trim().is_empty() {
                Some(Self::Comment)
            } else {
                Sample::parse(line).map(Self::Sample)
            };
        };
        let comment = comment.trim_start_matches([' ', '\t']);
        let (keyword, rest) = split(comment);
        let (family, text) = split(rest);
        Some(match keyword {
            "HELP" if !family.is_empty() => Self::Help { family, text },
            "TYPE" if !family.is_empty() && !text.trim().is_empty() => {
                Self::Type { family, kind: text.trim() }
            }
            "TYPE" => return None,
            "UNIT" => Self::Unit,
            "EOF" if rest.is_empty() => Self::Eof,
            _ => Self::Comment,
        })
    }
}

/// The first word and the rest behind it.
fn split(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once([' ', '\t']).unwrap_or((text, ""));
    (word, rest.trim_start_matches([' ', '\t']))
}

impl<'a> Sample<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let name_end = line.find(|char: char| !is_name(char)).unwrap_or(line.len());
        let name = &line[..name_end];
        if name.is_empty() || name.starts_with(|char: char| char.is_ascii_digit()) {
            return None;
        }
        let labels = line[name_end..].trim_start_matches([' ', '\t']);
        let labels_end = if labels.starts_with('{') { end_of_labels(labels)? } else { 0 };
        let rest = &labels[labels_end..];
        let series = &line[..line.len() - rest.len()];
        if !rest.starts_with([' ', '\t']) && labels_end == 0 && name_end + labels.len() == line.len() {
            return None;
        }
        // An exemplar begins with another sharp.
        let numbers = rest.split('#').next().unwrap_or_default();
        let mut numbers = numbers.split_ascii_whitespace();
        let value = numbers.next().filter(|value| is_number(value))?;
        let timestamp = numbers.next();
        if timestamp.is_some_and(|timestamp| !is_number(timestamp)) || numbers.next().is_some() {
            return None;
        }
        Some(Self { name, series: series.trim_end(), value, timestamp })
    }
}

fn is_name(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_' || char == ':'
}

/// `NaN`, `+Inf` and `1e9` too, as Go and Rust read them alike.
fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok()
}

/// Behind the brace that closes; quotes may hold braces, and a backslash hides what follows it.
fn end_of_labels(labels: &str) -> Option<usize> {
    let (mut quoted, mut hidden) = (false, false);
    for (index, byte) in labels.bytes().enumerate() {
        match byte {
            _ if hidden => hidden = false,
            b'\\' if quoted => hidden = true,
            b'"' => quoted = !quoted,
            b'}' if !quoted => return Some(index + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests;
