//! The metrics and labels in expressions of PromQL, and in the text format of Prometheus.

use std::collections::{BTreeMap, BTreeSet};

/// A metric with labels. A label has a value if the selector requires exactly this value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    pub metric: String,
    pub labels: BTreeMap<String, Option<String>>,
}

/// The values of each label of each metric.
pub type Exported = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// The keywords before a list of labels in parentheses.
const GROUPING: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];
/// The beginnings of the names of all metrics of this project.
const PREFIXES: [&str; 2] = ["app_health_", "envoy_"];

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Name(String),
    /// The content of a string, with its escapes.
    Text(String),
    Symbol(char),
}

impl Token {
    fn name(&self) -> Option<&str> {
        if let Self::Name(name) = self { Some(name) } else { None }
    }

    fn is(&self, symbol: char) -> bool {
        *self == Self::Symbol(symbol)
    }
}

/// Splits an expression into tokens. Numbers are omitted.
fn tokens(expression: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut chars = expression.chars().peekable();
    while let Some(char) = chars.next() {
        if char == '"' {
            let mut text = String::new();
            while let Some(char) = chars.next().filter(|char| *char != '"') {
                text.push(char);
                if char == '\\' {
                    text.extend(chars.next());
                }
            }
            tokens.push(Token::Text(text));
        } else if char.is_ascii_alphanumeric() || char == '_' {
            let mut word = String::from(char);
            while let Some(char) = chars.next_if(|char| char.is_ascii_alphanumeric() || *char == '_') {
                word.push(char);
            }
            if !char.is_ascii_digit() {
                tokens.push(Token::Name(word));
            }
        } else if !char.is_whitespace() {
            tokens.push(Token::Symbol(char));
        }
    }
    tokens
}

/// Returns the tokens in the parentheses or braces that open at `open`, or none if nothing opens there.
fn enclosed(tokens: &[Token], open: usize) -> &[Token] {
    let rest = tokens.get(open..).unwrap_or_default();
    if !rest.first().is_some_and(|token| token.is('(') || token.is('{')) {
        return &[];
    }
    let end = rest.iter().position(|token| token.is(')') || token.is('}'));
    &rest[1..end.unwrap_or(rest.len())]
}

/// Returns the labels in the braces that open at `open`.
fn labels(tokens: &[Token], open: usize) -> BTreeMap<String, Option<String>> {
    let inside = enclosed(tokens, open);
    let value = |index: usize| match inside.get(index + 1..index + 3) {
        Some([Token::Symbol('='), Token::Text(value)]) => Some(value.clone()),
        _ => None,
    };
    let names = inside.iter().enumerate().filter_map(|(index, token)| Some((index, token.name()?)));
    names.map(|(index, name)| (name.to_owned(), value(index))).collect()
}

/// Returns the labels by which the keyword at `index` groups or joins series.
fn grouping(tokens: &[Token], index: usize) -> &[Token] {
    let is_keyword = tokens[index].name().is_some_and(|name| GROUPING.contains(&name));
    if is_keyword { enclosed(tokens, index + 1) } else { &[] }
}

/// Returns every selector of this project's metrics in an expression.
pub fn series_of(expression: &str) -> Vec<Series> {
    let tokens = tokens(expression);
    let mut found = Vec::new();
    let mut index = 0;
    while index < tokens.len() {
        let name = tokens[index].name().unwrap_or_default();
        if PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
            found.push(Series { metric: name.to_owned(), labels: labels(&tokens, index + 1) });
        }
        let is_selector = tokens.get(index + 1).is_some_and(|token| token.is('{'));
        let is_grouping = !grouping(&tokens, index).is_empty();
        let skipped = if is_selector || is_grouping { enclosed(&tokens, index + 1).len() + 2 } else { 0 };
        index += 1 + skipped;
    }
    found
}

/// Returns the labels by which an expression groups or joins series.
pub fn grouping_labels(expression: &str) -> BTreeSet<String> {
    let tokens = tokens(expression);
    let lists = (0..tokens.len()).flat_map(|index| grouping(&tokens, index));
    lists.filter_map(Token::name).map(str::to_owned).collect()
}

/// Returns every metric that has a sample in this text.
pub fn exported(text: &str) -> Exported {
    let mut metrics = Exported::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let tokens = tokens(line);
        let Some(metric) = tokens.first().and_then(Token::name) else { continue };
        let values = metrics.entry(metric.to_owned()).or_default();
        for (label, value) in labels(&tokens, 1) {
            values.entry(label).or_default().extend(value);
        }
    }
    metrics
}
