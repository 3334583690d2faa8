//! The metrics and labels in expressions of PromQL, and in the text format of Prometheus.

use std::collections::{BTreeMap, BTreeSet};

/// A metric with names of labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    pub metric: String,
    pub labels: BTreeSet<String>,
}

/// The keywords before a list of labels in parentheses.
const GROUPING: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];
/// The beginnings of the names of all metrics of this project.
const PREFIXES: [&str; 2] = ["app_health_", "envoy_"];

/// Splits an expression into names and single characters. Strings and numbers are omitted.
fn tokens(expression: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut chars = expression.chars().peekable();
    while let Some(char) = chars.next() {
        if char == '"' {
            while let Some(char) = chars.next().filter(|char| *char != '"') {
                if char == '\\' {
                    chars.next();
                }
            }
        } else if char.is_ascii_alphanumeric() || char == '_' {
            let mut word = String::from(char);
            while let Some(char) = chars.next_if(|char| char.is_ascii_alphanumeric() || *char == '_') {
                word.push(char);
            }
            if !char.is_ascii_digit() {
                tokens.push(word);
            }
        } else if !char.is_whitespace() {
            tokens.push(char.to_string());
        }
    }
    tokens
}

/// Returns true for a name, as opposed to a single character such as a brace.
fn is_name(token: &str) -> bool {
    token.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_')
}

/// Returns the index after the parenthesis or brace that closes the one at `open`.
fn end(tokens: &[String], open: usize) -> usize {
    let closes = |token: &String| token == ")" || token == "}";
    tokens[open..].iter().position(closes).map_or(tokens.len(), |length| open + length + 1)
}

/// Returns the names from `start` to the closing parenthesis or brace.
fn names(tokens: &[String], open: usize) -> BTreeSet<String> {
    tokens[open..end(tokens, open)].iter().filter(|token| is_name(token)).cloned().collect()
}

/// Returns true if the token is followed by an opening parenthesis and lists labels.
fn is_grouping(tokens: &[String], index: usize) -> bool {
    GROUPING.contains(&tokens[index].as_str()) && tokens.get(index + 1).is_some_and(|next| next == "(")
}

/// Returns every selector of this project's metrics in an expression, with the labels that it matches.
pub fn series_of(expression: &str) -> Vec<Series> {
    let tokens = tokens(expression);
    let mut found = Vec::new();
    let mut index = 0;
    while index < tokens.len() {
        let has_matchers = tokens.get(index + 1).is_some_and(|next| next == "{");
        if is_grouping(&tokens, index) {
            index = end(&tokens, index + 1);
            continue;
        }
        if PREFIXES.iter().any(|prefix| tokens[index].starts_with(prefix)) {
            let labels = if has_matchers { names(&tokens, index + 1) } else { BTreeSet::new() };
            found.push(Series { metric: tokens[index].clone(), labels });
        }
        index = if has_matchers { end(&tokens, index + 1) } else { index + 1 };
    }
    found
}

/// Returns the labels by which an expression groups or joins series.
pub fn grouping_labels(expression: &str) -> BTreeSet<String> {
    let tokens = tokens(expression);
    let lists = (0..tokens.len()).filter(|index| is_grouping(&tokens, *index));
    lists.flat_map(|index| names(&tokens, index + 1)).collect()
}

/// Returns the labels of every metric that has a sample in this text.
pub fn exported(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut metrics: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let tokens = tokens(line);
        let Some(metric) = tokens.first() else { continue };
        let labels =
            if tokens.get(1).is_some_and(|next| next == "{") { names(&tokens, 1) } else { BTreeSet::new() };
        metrics.entry(metric.clone()).or_default().extend(labels);
    }
    metrics
}
