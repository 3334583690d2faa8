//! Parsers of flag values.

use std::time::Duration;

pub(super) fn seconds(seconds: u32) -> Duration {
    Duration::from_secs(seconds.into())
}

/// Parses a non-negative duration in Go's syntax, for example `5s`, `1m30s`, `500ms` or `1.5h`.
pub fn go_duration(text: &str) -> Option<Duration> {
    if text.is_empty() || text == "0" {
        return (!text.is_empty()).then_some(Duration::ZERO);
    }
    let is_number = |char: char| char.is_ascii_digit() || char == '.';
    let mut total = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|char| !is_number(char))?);
        let (unit, next) = after.split_at(after.find(is_number).unwrap_or(after.len()));
        let seconds = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        total += number.parse::<f64>().ok()? * seconds;
        rest = next;
    }
    Duration::try_from_secs_f64(total).ok()
}

#[cfg(test)]
mod tests;
