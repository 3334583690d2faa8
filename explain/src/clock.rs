//! Time stamps of Kubernetes, and ages as kubectl prints them.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A time in whole seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timestamp(i64);

impl Timestamp {
    /// Parses RFC 3339, with or without fractions of a second.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        OffsetDateTime::parse(text, &Rfc3339).ok().map(|time| Self(time.unix_timestamp()))
    }

    /// Returns the seconds from `self` to `later`; 0 if it is earlier.
    pub(crate) fn seconds_until(self, later: Self) -> u64 {
        u64::try_from(later.0.saturating_sub(self.0)).unwrap_or(0)
    }
}

/// Formats an age like kubectl: `8s`, `5m`, `3h`, `2d`.
pub(crate) fn age(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}
