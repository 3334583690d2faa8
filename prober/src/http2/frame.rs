//! Frames of HTTP/2, with the checks of Go's `http2.Framer` for each.

/// What a frame that was received says to a client with one request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Headers(Headers),
    Data {
        stream: u32,
        data: Vec<u8>,
        is_end: bool,
    },
    Reset {
        stream: u32,
        code: u32,
    },
    Settings(Vec<(u16, u32)>),
    SettingsAck,
    Ping([u8; 8]),
    GoAway {
        last_stream: u32,
        code: u32,
    },
    WindowUpdate {
        stream: u32,
        increment: u32,
    },
    PushPromise,
    /// A frame that a client ignores.
    Other,
}

/// The header block of a response or of its trailers.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Headers {
    pub(super) stream: u32,
    pub(super) is_end: bool,
    /// In their order; pseudo headers come first.
    pub(super) fields: Vec<super::hpack::Field>,
    /// True if fields are missing, because there were too many of them.
    pub(super) is_truncated: bool,
}

/// Why a frame cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameError {
    /// The stream is broken.
    Stream(u32),
    /// The connection is broken.
    Connection,
    /// The connection has ended.
    Ended,
}

pub(super) mod kind {
    pub(in super::super) const DATA: u8 = 0;
    pub(in super::super) const HEADERS: u8 = 1;
    pub(in super::super) const PRIORITY: u8 = 2;
    pub(in super::super) const RST_STREAM: u8 = 3;
    pub(in super::super) const SETTINGS: u8 = 4;
    pub(in super::super) const PUSH_PROMISE: u8 = 5;
    pub(in super::super) const PING: u8 = 6;
    pub(in super::super) const GOAWAY: u8 = 7;
    pub(in super::super) const WINDOW_UPDATE: u8 = 8;
    pub(in super::super) const CONTINUATION: u8 = 9;
}

pub(super) mod flag {
    pub(in super::super) const ACK: u8 = 1;
    pub(in super::super) const END_STREAM: u8 = 1;
    pub(in super::super) const END_HEADERS: u8 = 4;
    pub(in super::super) const PADDED: u8 = 8;
    pub(in super::super) const PRIORITY: u8 = 32;
}

/// Error codes of HTTP/2.
pub(super) mod code {
    pub(in super::super) const REFUSED_STREAM: u32 = 7;
}

pub(super) mod setting {
    pub(in super::super) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(in super::super) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(in super::super) const MAX_HEADER_LIST_SIZE: u16 = 6;
}

/// The first nine bytes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHead {
    pub(super) length: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl FrameHead {
    pub(super) const BYTES: usize = 9;

    pub(super) fn parse(bytes: [u8; Self::BYTES]) -> Self {
        let [a, b, c, kind, flags, stream @ ..] = bytes;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        Self { length, kind, flags, stream: u32::from_be_bytes(stream) & 0x7fff_ffff }
    }

    pub(super) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Appends a frame.
    pub(super) fn write(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
        let [_, length @ ..] = (payload.len() as u32).to_be_bytes();
        out.extend_from_slice(&length);
        out.extend_from_slice(&[kind, flags]);
        out.extend_from_slice(&stream.to_be_bytes());
        out.extend_from_slice(payload);
    }

    /// Returns the frame, except for a header block.
    pub(super) fn frame(self, payload: &[u8]) -> Result<Frame, FrameError> {
        let Self { kind, stream, .. } = self;
        let connection = FrameError::Connection;
        let number = |bytes: &[u8]| bytes.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
        Ok(match kind {
            kind::DATA if stream == 0 => return Err(connection),
            kind::DATA => {
                let data = self.unpadded(payload).ok_or(connection)?.to_vec();
                Frame::Data { stream, data, is_end: self.has(flag::END_STREAM) }
            }
            kind::PRIORITY if stream == 0 || payload.len() != 5 => return Err(connection),
            kind::RST_STREAM if stream == 0 || payload.len() != 4 => return Err(connection),
            kind::RST_STREAM => Frame::Reset { stream, code: number(payload).ok_or(connection)? },
            kind::SETTINGS if stream != 0 || !payload.len().is_multiple_of(6) => return Err(connection),
            kind::SETTINGS if self.has(flag::ACK) && !payload.is_empty() => return Err(connection),
            kind::SETTINGS if self.has(flag::ACK) => Frame::SettingsAck,
            kind::SETTINGS => Frame::Settings(settings(payload)?),
            kind::PUSH_PROMISE if stream == 0 => return Err(connection),
            kind::PUSH_PROMISE => Frame::PushPromise,
            kind::PING if stream != 0 => return Err(connection),
            kind::PING => {
                let data = payload.try_into().map_err(|_| connection)?;
                if self.has(flag::ACK) { Frame::Other } else { Frame::Ping(data) }
            }
            kind::GOAWAY if stream != 0 => return Err(connection),
            kind::GOAWAY => Frame::GoAway {
                last_stream: number(payload).ok_or(connection)? & 0x7fff_ffff,
                code: payload.get(4..).and_then(number).ok_or(connection)?,
            },
            kind::WINDOW_UPDATE if payload.len() != 4 => return Err(connection),
            kind::WINDOW_UPDATE => match number(payload).ok_or(connection)? & 0x7fff_ffff {
                0 if stream == 0 => return Err(connection),
                0 => return Err(FrameError::Stream(stream)),
                increment => Frame::WindowUpdate { stream, increment },
            },
            _ => Frame::Other,
        })
    }

    /// Returns the part of a header block in a HEADERS frame.
    pub(super) fn block(self, payload: &[u8]) -> Result<&[u8], FrameError> {
        if self.stream == 0 {
            return Err(FrameError::Connection);
        }
        let (padding, rest) = self.padding(payload).ok_or(FrameError::Ended)?;
        let priority = if self.has(flag::PRIORITY) { 5 } else { 0 };
        let rest = rest.get(priority..).ok_or(FrameError::Ended)?;
        let length = rest.len().checked_sub(padding).ok_or(FrameError::Stream(self.stream))?;
        Ok(&rest[..length])
    }

    fn unpadded(self, payload: &[u8]) -> Option<&[u8]> {
        let (padding, rest) = self.padding(payload)?;
        rest.get(..rest.len().checked_sub(padding)?)
    }

    /// Returns the length of the padding, and what follows it.
    fn padding(self, payload: &[u8]) -> Option<(usize, &[u8])> {
        if !self.has(flag::PADDED) {
            return Some((0, payload));
        }
        let (padding, rest) = payload.split_first()?;
        Some((usize::from(*padding), rest))
    }
}

fn settings(payload: &[u8]) -> Result<Vec<(u16, u32)>, FrameError> {
    let (entries, _) = payload.as_chunks::<6>();
    let entries =
        entries.iter().map(|[a, b, value @ ..]| (u16::from_be_bytes([*a, *b]), u32::from_be_bytes(*value)));
    let is_valid = |(id, value): &(u16, u32)| match *id {
        setting::INITIAL_WINDOW_SIZE => *value <= 0x7fff_ffff,
        _ => true,
    };
    let entries: Vec<_> = entries.collect();
    if entries.iter().all(is_valid) { Ok(entries) } else { Err(FrameError::Connection) }
}

#[cfg(test)]
mod tests;
