//! Rules of Go's standard library that appear in Istio's formats.

use std::time::Duration;

/// Nanoseconds of the units of Go's `time.ParseDuration`.
const UNITS: [(&str, f64); 8] =
    [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("μs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3600e9)];

/// `time.ParseDuration`, for durations that are not negative.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut nanoseconds = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|char: char| !char.is_ascii_digit() && char != '.')?;
        let (number, behind) = rest.split_at_checked(end)?;
        let end = behind.find(|char: char| char.is_ascii_digit() || char == '.').unwrap_or(behind.len());
        let (unit, behind) = behind.split_at_checked(end)?;
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
        let padded = format!("0{number}0");
        nanoseconds += padded.parse::<f64>().ok().filter(|_| number != ".")? * factor
            / if number.contains('.') { 1.0 } else { 10.0 };
        rest = behind;
    }
    Duration::try_from_secs_f64(nanoseconds / 1e9).ok().filter(|duration| duration.as_secs() < 1 << 33)
}

/// `time.Duration.String`.
pub(crate) fn duration_string(duration: Duration) -> String {
    let nanoseconds = duration.as_nanos();
    let decimal = |unit: u128, name: &str| {
        let fraction = format!("{:0width$}", nanoseconds % unit, width = unit.ilog10() as usize);
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() || unit == 1 { "" } else { "." };
        let fraction = if unit == 1 { "" } else { fraction };
        (nanoseconds / unit, format!("{point}{fraction}{name}"))
    };
    match nanoseconds {
        0 => "0s".to_owned(),
        1..1_000 => format!("{nanoseconds}ns"),
        1_000..1_000_000 => {
            let (whole, rest) = decimal(1_000, "µs");
            format!("{whole}{rest}")
        }
        1_000_000..1_000_000_000 => {
            let (whole, rest) = decimal(1_000_000, "ms");
            format!("{whole}{rest}")
        }
        _ => {
            let (seconds, rest) = decimal(1_000_000_000, "s");
            let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
            let hours_text = if hours > 0 { format!("{hours}h") } else { String::new() };
            let minutes_text = if seconds >= 60 { format!("{minutes}m") } else { String::new() };
            format!("{hours_text}{minutes_text}{}{rest}", seconds % 60)
        }
    }
}

/// `strconv.ParseBool`.
pub(crate) fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// `strconv.Unquote`, for a text between double quotes or back quotes.
pub(crate) fn unquote(text: &str) -> Option<String> {
    if let Some(raw) = text.strip_prefix('`').and_then(|text| text.strip_suffix('`')) {
        return (!raw.contains('`')).then(|| raw.replace('\r', ""));
    }
    let quoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'))?;
    let mut out = Vec::with_capacity(quoted.len());
    let mut chars = quoted.chars();
    while let Some(char) = chars.next() {
        match char {
            '"' | '\n' => return None,
            '\\' => escape(&mut chars, &mut out)?,
            char => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    // Go keeps invalid bytes, which JSON cannot contain and Go replaces there.
    Some(String::from_utf8_lossy(&out).into_owned())
}

/// Reads an escape behind its backslash.
fn escape(chars: &mut std::str::Chars<'_>, out: &mut Vec<u8>) -> Option<()> {
    let first = chars.next()?;
    let mut number = |digits: usize, radix: u32, start: u32| {
        (0..digits).try_fold(start, |value, _| Some(value * radix + chars.next()?.to_digit(radix)?))
    };
    match first {
        'a' => out.push(7),
        'b' => out.push(8),
        'f' => out.push(12),
        'n' => out.push(b'\n'),
        'r' => out.push(b'\r'),
        't' => out.push(b'\t'),
        'v' => out.push(11),
        '\\' => out.push(b'\\'),
        '"' => out.push(b'"'),
        'x' => out.push(u8::try_from(number(2, 16, 0)?).ok()?),
        '0'..='7' => out.push(u8::try_from(number(2, 8, first.to_digit(8)?)?).ok()?),
        'u' | 'U' => {
            let char = char::from_u32(number(if first == 'u' { 4 } else { 8 }, 16, 0)?)?;
            out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests;
