//! The part of an HTTP/2 server that a script needs: it reads requests and acknowledges SETTINGS
//! and PING.

use std::io::{Error, ErrorKind, Result};

use loona_hpack::Decoder;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::frames::{self, ACK, DATA, END_STREAM, HEADERS, PING, SETTINGS};
use super::seen::Request;

/// The client connection preface (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const PADDED: u8 = 8;
const PRIORITY: u8 = 32;

/// State of a connection.
#[derive(Default)]
pub struct Http2 {
    decoder: Option<Decoder<'static>>,
    /// The stream of the last request; 0 before the first one.
    pub stream: u32,
}

impl Http2 {
    /// Reads until a request is complete.
    ///
    /// # Errors
    /// If the client disconnects or does not use HTTP/2.
    pub async fn request<S: AsyncRead + AsyncWrite + Unpin>(&mut self, stream: &mut S) -> Result<Request> {
        if self.decoder.is_none() {
            let mut preface = [0; PREFACE.len()];
            stream.read_exact(&mut preface).await?;
            if preface != PREFACE {
                return Err(ErrorKind::InvalidData.into());
            }
        }
        let mut request = None;
        loop {
            let mut head = [0; 9];
            stream.read_exact(&mut head).await?;
            let [a, b, c, kind, flags, id @ ..] = head;
            let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
            stream.read_exact(&mut payload).await?;
            match kind {
                SETTINGS if flags & ACK == 0 => {
                    stream.write_all(&frames::frame(SETTINGS, ACK, 0, &[])).await?
                }
                PING if flags & ACK == 0 => stream.write_all(&frames::frame(PING, ACK, 0, &payload)).await?,
                HEADERS => {
                    self.stream = u32::from_be_bytes(id);
                    request = Some(self.decode(flags, &payload)?);
                }
                _ => {}
            }
            stream.flush().await?;
            if matches!(kind, HEADERS | DATA)
                && flags & END_STREAM != 0
                && let Some(request) = request.take()
            {
                return Ok(request);
            }
        }
    }

    fn decode(&mut self, flags: u8, payload: &[u8]) -> Result<Request> {
        let skipped = if flags & PRIORITY == 0 { 0 } else { 5 };
        if flags & PADDED != 0 {
            return Err(Error::other("padded frames are not supported"));
        }
        let block = payload.get(skipped..).unwrap_or_default();
        let fields = self.decoder.get_or_insert_with(Decoder::new).decode(block);
        let fields = fields.map_err(|error| Error::other(format!("{error:?}")))?;
        let text = |bytes: &[u8]| bytes.iter().copied().map(char::from).collect::<String>();
        let fields: Vec<_> = fields.iter().map(|(name, value)| (text(name), text(value))).collect();
        Ok(Request::of_fields(&fields))
    }
}
