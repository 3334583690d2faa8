//! Rules of Go's standard library that appear in Istio's formats.

use std::time::Duration;

/// Nanoseconds of the units of Go's `time.ParseDuration`.
const UNITS: [(&str, u128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
/// The longest duration that Go can represent, in nanoseconds.
const LONGEST: u128 = i64::MAX as u128;

/// `time.ParseDuration`, for durations that are not negative.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut nanoseconds = 0_u128;
    while !rest.is_empty() {
        let is_number = |char: char| char.is_ascii_digit() || char == '.';
        let (number, behind) = rest.split_at_checked(rest.find(|char| !is_number(char))?)?;
        let (unit, behind) = behind.split_at_checked(behind.find(is_number).unwrap_or(behind.len()))?;
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()? };
        // More digits are less than a nanosecond of an hour.
        let fraction = fraction.get(..fraction.len().min(15)).filter(|_| !fraction.contains('.'))?;
        let part = if fraction.is_empty() { 0 } else { fraction.parse::<u128>().ok()? };
        nanoseconds += u128::from(whole) * factor + part * factor / 10_u128.pow(fraction.len() as u32);
        rest = behind;
    }
    let nanoseconds = (nanoseconds <= LONGEST).then(|| u64::try_from(nanoseconds).ok())??;
    Some(Duration::from_nanos(nanoseconds))
}

/// `time.Duration.String`.
pub(crate) fn duration_string(duration: Duration) -> String {
    let nanoseconds = duration.as_nanos();
    // The number of units with their decimals.
    let decimal = |number: u128, digits: usize| {
        let unit = 10_u128.pow(digits as u32);
        let text = format!("{}.{:0digits$}", number / unit, number % unit);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match nanoseconds {
        0 => "0s".to_owned(),
        1..1_000 => format!("{nanoseconds}ns"),
        1_000..1_000_000 => format!("{}µs", decimal(nanoseconds, 3)),
        1_000_000..1_000_000_000 => format!("{}ms", decimal(nanoseconds, 6)),
        _ => {
            let minutes = nanoseconds / 60_000_000_000;
            let seconds = decimal(nanoseconds % 60_000_000_000, 9);
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{seconds}s"),
                (0, minutes) => format!("{minutes}m{seconds}s"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
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
