//! The part of DNS messages that is read and written here, RFC 1035 section 4.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

const HEADER: usize = 12;
/// The largest message over UDP that a client without EDNS accepts.
const SMALLEST_LIMIT: usize = 512;
/// The largest message over TCP.
pub const LARGEST_LIMIT: usize = 65_535;
const LONGEST_LABEL: usize = 63;
const LONGEST_NAME: usize = 255;

pub const TYPE_A: u16 = 1;
const TYPE_CNAME: u16 = 5;
pub const TYPE_AAAA: u16 = 28;
const TYPE_OPT: u16 = 41;
const CLASS_IN: u16 = 1;
/// How long clients may keep an answer, in seconds.
const TTL: u32 = 30;

/// Stands for a dot that does not separate labels.
const DOT_IN_LABEL: char = '\u{2024}';

/// Flags of the header.
const RESPONSE: u16 = 0x8000;
const OPCODE: u16 = 0x7800;
const AUTHORITATIVE: u16 = 0x0400;
const TRUNCATED: u16 = 0x0200;
/// Copied to the response: recursion desired, and checking disabled.
const COPIED: u16 = 0x0110;

/// Response codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    NoError = 0,
    FormatError = 1,
    ServerFailure = 2,
    NotImplemented = 4,
}

/// A question of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    id: u16,
    flags: u16,
    /// The bytes of the question.
    question: Vec<u8>,
    /// The name in lower case, without the dot at the end, such as `web.shop.svc.cluster.local`; each character is a
    /// byte. `None` for the root.
    pub name: Option<String>,
    pub kind: u16,
    /// The largest message over UDP that the client accepts.
    pub limit: usize,
}

/// What is not a question of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoQuery {
    /// No answer: too short, or a response.
    Ignored,
    /// This answer.
    Refused(Vec<u8>),
}

impl Query {
    /// Reads a message.
    ///
    /// # Errors
    /// If it is not one question.
    pub fn parse(message: &[u8]) -> Result<Self, NoQuery> {
        let header = message.first_chunk::<HEADER>().ok_or(NoQuery::Ignored)?;
        let [id, flags, questions, answers, authorities, additional] = numbers(header);
        if flags & RESPONSE != 0 {
            return Err(NoQuery::Ignored);
        }
        let refused =
            |code| NoQuery::Refused(head(id, RESPONSE | flags & (OPCODE | COPIED), code, [0, 0]).into());
        if flags & OPCODE != 0 {
            return Err(refused(Code::NotImplemented));
        }
        if questions != 1 || answers > 1 || authorities > 1 || additional > 2 {
            return Err(refused(Code::FormatError));
        }
        let (name, after) = name(message, HEADER).ok_or_else(|| refused(Code::FormatError))?;
        let fields = message.get(after..after + 4).and_then(|fields| fields.first_chunk::<4>());
        let [kind_high, kind_low, _, _] = *fields.ok_or_else(|| refused(Code::FormatError))?;
        let end = after + 4;
        let records = answers + authorities + additional;
        let limit = edns_limit(message, end, records).ok_or_else(|| refused(Code::FormatError))?;
        Ok(Self {
            id,
            flags,
            question: message.get(HEADER..end).unwrap_or_default().to_vec(),
            name,
            kind: u16::from_be_bytes([kind_high, kind_low]),
            limit,
        })
    }

    /// Returns a response without records.
    pub fn failure(&self, code: Code) -> Vec<u8> {
        let mut message: Vec<u8> = head(self.id, RESPONSE | self.flags & COPIED, code, [1, 0]).into();
        message.extend_from_slice(&self.question);
        message
    }

    /// Returns the response with these records. Those that do not fit within `limit` bytes are left out, which
    /// the response says.
    pub fn response(&self, records: &[Record], limit: usize) -> Vec<u8> {
        let mut message: Vec<u8> =
            head(self.id, RESPONSE | AUTHORITATIVE | self.flags & COPIED, Code::NoError, [1, 0]).into();
        message.extend_from_slice(&self.question);
        let mut written = 0_u16;
        for record in records {
            let before = message.len();
            record.write(&mut message);
            if message.len() > limit {
                message.truncate(before);
                if let Some(flags) = message.get_mut(2) {
                    *flags |= TRUNCATED.to_be_bytes()[0];
                }
                break;
            }
            written = written.saturating_add(1);
        }
        if let Some(count) = message.get_mut(6..8) {
            count.copy_from_slice(&written.to_be_bytes());
        }
        message
    }
}

/// Returns true if a message is the response to this query: with its number and its question, which only a response
/// without records may lack.
pub fn answers(response: &[u8], query: &[u8]) -> bool {
    let (Some(asked), Some(answered)) = (query.first_chunk(), response.first_chunk()) else { return false };
    let [id, ..] = numbers(asked);
    let [answered_id, flags, questions, records, ..] = numbers(answered);
    let end = name(query, HEADER).map_or(query.len(), |(_, after)| after + 4);
    let is_same = match questions {
        0 => records == 0,
        _ => question(response, end).is_some_and(|found| {
            question(query, end).is_some_and(|expected| found.eq_ignore_ascii_case(expected))
        }),
    };
    flags & RESPONSE != 0 && id == answered_id && is_same
}

fn question(message: &[u8], end: usize) -> Option<&[u8]> {
    message.get(HEADER..end)
}

/// A record of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The owner, as in [`Query::name`].
    pub name: String,
    pub data: Data,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    A(Ipv4Addr),
    Aaaa(Ipv6Addr),
    Alias(String),
}

impl Record {
    fn write(&self, to: &mut Vec<u8>) {
        let (kind, data) = match &self.data {
            Data::A(address) => (TYPE_A, address.octets().to_vec()),
            Data::Aaaa(address) => (TYPE_AAAA, address.octets().to_vec()),
            Data::Alias(name) => {
                let mut data = Vec::new();
                write_name(name, &mut data);
                (TYPE_CNAME, data)
            }
        };
        write_name(&self.name, to);
        to.extend_from_slice(&kind.to_be_bytes());
        to.extend_from_slice(&CLASS_IN.to_be_bytes());
        to.extend_from_slice(&TTL.to_be_bytes());
        // A name is shorter than 64 KiB.
        to.extend_from_slice(&u16::try_from(data.len()).unwrap_or(u16::MAX).to_be_bytes());
        to.extend_from_slice(&data);
    }
}

/// Returns true if DNS can represent this name.
pub fn is_name(name: &str) -> bool {
    let is_label = |label: &str| (1..=LONGEST_LABEL).contains(&label.len());
    name.is_ascii() && name.len() + 2 <= LONGEST_NAME && name.split('.').all(is_label)
}

fn write_name(name: &str, to: &mut Vec<u8>) {
    for label in name.split('.') {
        // A character of a name is one byte, or the dot in a label.
        let bytes = label.chars().take(LONGEST_LABEL).map(|char| u8::try_from(char).unwrap_or(b'.'));
        to.push(u8::try_from(label.chars().count().min(LONGEST_LABEL)).unwrap_or_default());
        to.extend(bytes);
    }
    to.push(0);
}

fn numbers(header: &[u8; HEADER]) -> [u16; 6] {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = *header;
    [[a, b], [c, d], [e, f], [g, h], [i, j], [k, l]].map(u16::from_be_bytes)
}

fn head(id: u16, flags: u16, code: Code, [questions, answers]: [u16; 2]) -> [u8; HEADER] {
    let [[a, b], [c, d], [e, f], [g, h]] =
        [id, flags | code as u16, questions, answers].map(u16::to_be_bytes);
    [a, b, c, d, e, f, g, h, 0, 0, 0, 0]
}

/// Reads a name without compression: its text, unless it is the root, and the position after it.
fn name(message: &[u8], start: usize) -> Option<(Option<String>, usize)> {
    let (mut text, mut at) = (String::new(), start);
    loop {
        let length = usize::from(*message.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        if length > LONGEST_LABEL || at + length - start > LONGEST_NAME {
            return None;
        }
        let label = message.get(at..at + length)?;
        if !text.is_empty() {
            text.push('.');
        }
        text.extend(label.iter().map(|byte| match byte {
            b'.' => DOT_IN_LABEL,
            _ => char::from(byte.to_ascii_lowercase()),
        }));
        at += length;
    }
    Some(((!text.is_empty()).then_some(text), at))
}

/// Returns the size of messages that the client accepts, which an OPT record can raise, RFC 6891; `None` if a record
/// is incomplete.
fn edns_limit(message: &[u8], mut at: usize, records: u16) -> Option<usize> {
    let mut limit = SMALLEST_LIMIT;
    for _ in 0..records {
        // As Istio's proxy, which accepts a message without the records that it announces.
        if at == message.len() {
            break;
        }
        at = skip_name(message, at)?;
        let fields: Range<usize> = at..at + 10;
        let [kind_high, kind_low, size_high, size_low, _, _, _, _, length_high, length_low] =
            *message.get(fields)?.first_chunk::<10>()?;
        if u16::from_be_bytes([kind_high, kind_low]) == TYPE_OPT {
            limit = limit.max(u16::from_be_bytes([size_high, size_low]).into());
        }
        at += 10 + usize::from(u16::from_be_bytes([length_high, length_low]));
        message.get(at..)?;
    }
    Some(limit)
}

/// Returns the position after a name, which may end with a pointer.
fn skip_name(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match usize::from(*message.get(at)?) {
            0 => return Some(at + 1),
            length @ 1..=LONGEST_LABEL => at += 1 + length,
            0xc0..=0xff => return Some(at + 2),
            _ => return None,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
