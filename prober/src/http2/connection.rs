//! The frames of a connection, with header blocks put together and decoded, by the rules of Go's
//! `http2.Framer` with `ReadMetaHeaders`.

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::frame::{Frame, FrameError, FrameHead, Headers, flag, kind};
use super::hpack::{self, Decoder, Field};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The largest payload that is kept: Go's gRPC client accepts frames of 16 MiB.
const MAX_FRAME_BYTES: usize = 1 << 20;
/// The size of a frame that every peer accepts.
const FRAME_BYTES: usize = 16 << 10;
/// The size of a header list that Go's clients accept.
const MAX_HEADER_LIST_BYTES: usize = 10 << 20;
/// The size of an encoded header block that is decoded.
const MAX_BLOCK_BYTES: usize = 1 << 20;

/// A connection, on which the preface was sent.
#[derive(Debug)]
pub(super) struct Connection<S> {
    stream: S,
    decoder: Decoder,
    max_frame: usize,
    payload: Vec<u8>,
    /// Bytes to send.
    out: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Prepares the preface with these settings and an addition to the window of the connection; it is sent
    /// with the first frame. A frame of more than `max_frame` bytes breaks the connection; at most 1 MiB.
    pub(super) fn new(stream: S, settings: &[(u16, u32)], window: u32, max_frame: usize) -> Self {
        let mut connection = Self {
            stream,
            decoder: Decoder::default(),
            max_frame: max_frame.min(MAX_FRAME_BYTES),
            payload: Vec::new(),
            out: PREFACE.to_vec(),
        };
        let entry = |(id, value): &(u16, u32)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
        connection.write(kind::SETTINGS, 0, 0, &settings.iter().flat_map(entry).collect::<Vec<_>>());
        if window > 0 {
            connection.write(kind::WINDOW_UPDATE, 0, 0, &window.to_be_bytes());
        }
        connection
    }

    /// Adds a frame to what is sent next.
    pub(super) fn write(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        FrameHead::write(kind, flags, stream, payload, &mut self.out);
    }

    /// Adds a header block to what is sent next. All frames have the size that every peer accepts.
    pub(super) fn write_headers(&mut self, stream: u32, is_end: bool, block: &[u8]) {
        let mut parts = block.chunks(FRAME_BYTES).peekable();
        let mut kind = kind::HEADERS;
        let mut flags = if is_end { flag::END_STREAM } else { 0 };
        while let Some(part) = parts.next() {
            let end = if parts.peek().is_none() { flag::END_HEADERS } else { 0 };
            self.write(kind, flags | end, stream, part);
            (kind, flags) = (kind::CONTINUATION, 0);
        }
    }

    /// Sends what was written. If that fails, what was received before still counts, and then its end.
    async fn flush(&mut self) {
        if !self.out.is_empty() {
            let _ = self.stream.write_all(&self.out).await;
            let _ = self.stream.flush().await;
            self.out.clear();
        }
    }

    /// Sends what was written, and reads the next frame. Settings and pings are acknowledged with the next
    /// call.
    pub(super) async fn next(&mut self) -> Result<Frame, FrameError> {
        self.flush().await;
        let head = self.head().await?;
        if head.kind == kind::CONTINUATION {
            return Err(FrameError::Connection);
        }
        self.read_payload(head).await?;
        let frame = match head.kind {
            kind::HEADERS => Frame::Headers(self.headers(head).await?),
            _ => head.frame(&self.payload)?,
        };
        match &frame {
            Frame::Settings(_) => self.write(kind::SETTINGS, flag::ACK, 0, &[]),
            Frame::Ping(data) => self.write(kind::PING, flag::ACK, 0, &data[..]),
            _ => {}
        }
        Ok(frame)
    }

    async fn head(&mut self) -> Result<FrameHead, FrameError> {
        let mut head = [0; FrameHead::BYTES];
        self.stream.read_exact(&mut head).await.map_err(|_| FrameError::Ended)?;
        let head = FrameHead::parse(head);
        if head.length > self.max_frame { Err(FrameError::Connection) } else { Ok(head) }
    }

    async fn read_payload(&mut self, head: FrameHead) -> Result<(), FrameError> {
        self.payload.resize(head.length, 0);
        self.stream.read_exact(&mut self.payload).await.map(drop).map_err(|_| FrameError::Ended)
    }

    /// Reads the rest of a header block whose first frame is in the payload.
    async fn headers(&mut self, first: FrameHead) -> Result<Headers, FrameError> {
        let stream = first.stream;
        let mut block = first.block(&self.payload)?.to_vec();
        let mut is_last = first.has(flag::END_HEADERS);
        while !is_last {
            let head = self.head().await?;
            if head.kind != kind::CONTINUATION || head.stream != stream {
                return Err(FrameError::Connection);
            }
            self.read_payload(head).await?;
            if block.len() + self.payload.len() > MAX_BLOCK_BYTES {
                return Err(FrameError::Connection);
            }
            block.extend_from_slice(&self.payload);
            is_last = head.has(flag::END_HEADERS);
        }
        let mut list = FieldList::default();
        self.decoder.decode(&block, |field| list.add(field)).map_err(|_| FrameError::Connection)?;
        let FieldList { fields, is_truncated, is_invalid, .. } = list;
        if is_invalid || !has_valid_pseudo_headers(&fields) {
            return Err(FrameError::Stream(stream));
        }
        Ok(Headers { stream, is_end: first.has(flag::END_STREAM), fields, is_truncated })
    }
}

/// The fields of a header block as far as they are valid.
#[derive(Debug, Default)]
struct FieldList {
    fields: Vec<Field>,
    bytes: usize,
    has_regular: bool,
    is_truncated: bool,
    is_invalid: bool,
}

impl FieldList {
    fn add(&mut self, field: Field) {
        if self.is_invalid || self.is_truncated {
            return;
        }
        let (name, value) = &field;
        let is_pseudo = name.starts_with(b":");
        self.is_invalid = value.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t')
            || (is_pseudo && self.has_regular)
            || (!is_pseudo && !is_valid_name(name));
        self.has_regular |= !is_pseudo;
        self.bytes += hpack::size(&field);
        if self.bytes > MAX_HEADER_LIST_BYTES {
            self.is_truncated = true;
        } else {
            self.fields.push(field);
        }
    }
}

fn is_valid_name(name: &[u8]) -> bool {
    let is_token =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(byte);
    !name.is_empty() && name.iter().all(is_token)
}

/// False for unknown or repeated pseudo headers, and for those of requests and of responses together.
fn has_valid_pseudo_headers(fields: &[Field]) -> bool {
    const REQUEST: [&[u8]; 5] = [b":method", b":path", b":scheme", b":authority", b":protocol"];
    let names: Vec<&[u8]> =
        fields.iter().map(|(name, _)| name.as_ref()).take_while(|name| name.starts_with(b":")).collect();
    let is_status = |name: &&[u8]| *name == b":status";
    let is_known = names.iter().all(|name| is_status(name) || REQUEST.contains(name));
    let is_repeated = names.iter().enumerate().any(|(index, name)| names[..index].contains(name));
    let is_mixed = names.iter().any(is_status) && !names.iter().all(is_status);
    is_known && !is_repeated && !is_mixed
}

#[cfg(test)]
mod tests;
