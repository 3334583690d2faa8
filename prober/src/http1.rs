//! One request and its response over HTTP/1.1, with Go's rules (`net/http` and `net/textproto` of Go 1.26).

mod body;
mod chunks;
mod fields;
mod head;
mod length;
mod reader;
mod request;

use probe::{Reason, Request};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};

pub(crate) use body::Body;
use head::Head;
use reader::Reader;

use crate::response::Response;

/// The number of bytes of all heads of a response, including interim ones, that Go's client accepts.
const HEAD_BYTES: u64 = 10 << 20;

/// Sends a request on a new connection and reads the head of the final response. Interim responses are
/// skipped, except 101.
pub(crate) async fn send<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    request: &Request,
    user_agent: &[u8],
) -> Result<Response<Body<S>>, Reason> {
    stream.write_all(&request::bytes(request, user_agent)).await.map_err(|_| Reason::Closed)?;
    stream.flush().await.map_err(|_| Reason::Closed)?;
    let mut reader = Reader::new(stream, HEAD_BYTES);
    loop {
        let head = read_head(&mut reader).await?;
        let length = length::length(&head)?;
        if head.is_interim() {
            continue;
        }
        reader.lift_limit();
        return Ok(Response {
            status: head.status,
            location: head.fields.location,
            body: Body::new(reader, length),
        });
    }
}

async fn read_head<S: AsyncRead + Unpin>(reader: &mut Reader<S>) -> Result<Head, Reason> {
    let mut parser = head::Parser::default();
    loop {
        if reader.buffered().is_empty() {
            reader.fill().await?;
        }
        let (consumed, head) = parser.parse(reader.buffered())?;
        reader.consume(consumed);
        if let Some(head) = head {
            return Ok(head);
        }
    }
}

#[cfg(test)]
mod tests;
