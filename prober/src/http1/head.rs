//! The head of a response: its status line and its headers, by the rules of Go's `http.ReadResponse` and
//! `textproto.Reader.ReadMIMEHeader`. The parser takes bytes as they arrive and keeps only what matters
//! for a probe, so that a response needs little memory whatever the application sends.

use probe::Reason;

use super::fields::{FieldParser, Fields};

/// As much of a status line as is kept: version, spaces and status come first.
const STATUS_LINE_BYTES: usize = 1 << 10;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) version: Version,
    /// At most three digits, the first of which may be a plus sign, as in Go.
    pub(super) status: u16,
    pub(super) fields: Fields,
}

/// The version of HTTP in a response. Go accepts any two digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    major: u8,
    minor: u8,
}

impl Version {
    pub(super) const HTTP_1_1: Self = Self { major: 1, minor: 1 };
}

impl Head {
    /// True if another response follows. Go takes 101 as final.
    pub(super) fn is_interim(&self) -> bool {
        matches!(self.status, 100..=199) && self.status != 101
    }
}

/// Parses one head.
#[derive(Debug, Default)]
pub(super) struct Parser {
    status_line: Vec<u8>,
    /// What the status line says; `None` until its end.
    start: Option<(Version, u16)>,
    fields: FieldParser,
}

impl Parser {
    /// Parses further bytes, and returns how many of them belong to the head; and the head, if it is
    /// complete.
    pub(super) fn parse(&mut self, bytes: &[u8]) -> Result<(usize, Option<Head>), Reason> {
        let Some((version, status)) = self.start else {
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let part = &bytes[..end.unwrap_or(bytes.len())];
            let room = STATUS_LINE_BYTES - self.status_line.len();
            self.status_line.extend_from_slice(&part[..part.len().min(room)]);
            let Some(end) = end else { return Ok((bytes.len(), None)) };
            self.start = Some(status_line(&self.status_line).ok_or(Reason::Protocol)?);
            return Ok((end + 1, None));
        };
        let (consumed, is_complete) = self.fields.parse(bytes)?;
        let head = is_complete.then(|| Head { version, status, fields: self.fields.take() });
        Ok((consumed, head))
    }
}

/// Returns version and status of a line without its line feed.
fn status_line(line: &[u8]) -> Option<(Version, u16)> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let space = line.iter().position(|byte| *byte == b' ')?;
    let (version, rest) = line.split_at(space);
    let rest = &rest[rest.iter().take_while(|byte| **byte == b' ').count()..];
    let status = rest.split(|byte| *byte == b' ').next().filter(|status| status.len() == 3)?;
    // Like Go's `Atoi`, it accepts a plus sign.
    let status = std::str::from_utf8(status).ok()?.parse().ok()?;
    let [b'H', b'T', b'T', b'P', b'/', major, b'.', minor] = version else { return None };
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| byte - b'0');
    Some((Version { major: digit(major)?, minor: digit(minor)? }, status))
}

impl Version {
    /// True if transfer codings count. Go takes 0.0 for 1.1.
    pub(super) fn has_transfer_codings(self) -> bool {
        self >= Self::HTTP_1_1 || self == Self { major: 0, minor: 0 }
    }
}

#[cfg(test)]
mod tests;
