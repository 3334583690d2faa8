//! Wall-clock timestamps, which are only shown and compared between entries.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

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

    /// Adds a duration, rounded to whole seconds.
    pub fn plus(self, time: Duration) -> Self {
        Self::from_seconds(self.0.saturating_add(seconds(time)))
    }

    /// Subtracts a duration, rounded to whole seconds.
    pub fn minus(self, age: Duration) -> Self {
        Self::from_seconds(self.0.saturating_sub(seconds(age)))
    }
}

fn seconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis().saturating_add(500) / 1000).unwrap_or(i64::MAX)
}

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let time = OffsetDateTime::from_unix_timestamp(self.0)
            .expect("the constructor clamps to the years 0 to 9999");
        formatter.write_str(&time.format(&Rfc3339).map_err(|_| fmt::Error)?)
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, TimestampError> {
        let time = OffsetDateTime::parse(text, &Rfc3339);
        let time = time.map_err(|_| TimestampError(text.chars().take(64).collect()))?;
        Ok(Self::from_seconds(time.unix_timestamp()))
    }
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
