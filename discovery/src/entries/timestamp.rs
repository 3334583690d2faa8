//! Wall-clock timestamps, which are only shown and compared between entries.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use time::{Date, Month, OffsetDateTime, Time, UtcOffset};

/// Seconds since 1970, formatted as in Kubernetes: `2026-01-02T03:04:05Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

/// Error for a text that is not an RFC 3339 timestamp.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an RFC 3339 timestamp such as 2026-01-02T03:04:05Z: {0:?}")]
pub struct TimestampError(String);

impl Timestamp {
    /// Creates a timestamp from seconds since 1970, clamped to the years 0 to 9999.
    pub fn from_seconds(seconds: i64) -> Self {
        Self(seconds.clamp(-62_167_219_200, 253_402_300_799))
    }

    /// Returns the seconds since 1970.
    pub fn seconds(self) -> i64 {
        self.0
    }

    /// Subtracts a duration, rounded to whole seconds.
    pub fn minus(self, age: Duration) -> Self {
        let age = i64::try_from(age.as_millis().saturating_add(500) / 1000).unwrap_or(i64::MAX);
        Self::from_seconds(self.0.saturating_sub(age))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let at = OffsetDateTime::from_unix_timestamp(self.0)
            .expect("the constructor clamps to the years 0 to 9999");
        let (year, month, day) = (at.year(), u8::from(at.month()), at.day());
        let (hour, minute, second) = at.to_hms();
        write!(formatter, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, TimestampError> {
        parse(text).ok_or_else(|| TimestampError(text.chars().take(64).collect()))
    }
}

fn parse(text: &str) -> Option<Timestamp> {
    let number = |from: usize, to: usize| {
        let digits = text.get(from..to)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u16>().ok())?
    };
    let small = |from: usize| number(from, from + 2).and_then(|number| u8::try_from(number).ok());
    let marks = [(4, '-'), (7, '-'), (10, 'T'), (13, ':'), (16, ':')];
    if !text.is_ascii() || !marks.iter().all(|(at, mark)| text[..].chars().nth(*at) == Some(*mark)) {
        return None;
    }
    let month = Month::try_from(small(5)?).ok()?;
    let date = Date::from_calendar_date(i32::from(number(0, 4)?), month, small(8)?).ok()?;
    let time = Time::from_hms(small(11)?, small(14)?, small(17)?.min(59)).ok()?;
    let rest = text[19..].trim_start_matches(|char: char| char == '.' || char.is_ascii_digit());
    let offset = match rest.as_bytes() {
        b"Z" => UtcOffset::UTC,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let at = text.len() - rest.len();
            let (hours, minutes) = (i8::try_from(small(at + 1)?).ok()?, i8::try_from(small(at + 4)?).ok()?);
            let sign = if *sign == b'-' { -1 } else { 1 };
            UtcOffset::from_hms(sign * hours, sign * minutes, 0).ok()?
        }
        _ => return None,
    };
    Some(Timestamp::from_seconds(date.with_time(time).assume_offset(offset).unix_timestamp()))
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
