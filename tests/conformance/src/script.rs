//! Performs the steps of a case on one connection.

use std::io::Result;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::server::TlsStream;

use super::bytes::Bytes;
use super::case::Step;
use super::frames;
use super::http2::Http2;
use super::seen::{Request, Seen};
use kit::app::read_head;

/// Time to wait at the end of a script for the client to disconnect.
const FAREWELL: Duration = Duration::from_secs(3);

/// A connection that can also be reset or closed without TLS `close_notify`.
pub trait Wire: AsyncRead + AsyncWrite + Unpin + Send {
    fn socket(&self) -> &TcpStream;
}

impl Wire for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

impl Wire for TlsStream<TcpStream> {
    fn socket(&self) -> &TcpStream {
        self.get_ref().0
    }
}

/// Records the requests of one connection.
#[derive(Clone)]
pub struct Record {
    /// The requests of all connections of the application.
    pub seen: Arc<Mutex<Seen>>,
    /// The index of this connection in `seen`.
    pub index: usize,
}

impl Record {
    fn add(&self, request: Request) {
        // The entry is absent if the records were cleared after the connection was accepted.
        if let Some(connection) = self.seen.lock().expect("no holder panics").get_mut(self.index) {
            connection.push(request);
        }
    }
}

/// The values for `{name}` in what an application writes.
pub type Places = Arc<Vec<(String, String)>>;

/// Performs `steps` and closes the connection.
///
/// # Errors
/// Any error that the client causes; it shows in the client's verdict.
pub async fn play(mut wire: impl Wire, steps: &[Step], record: &Record, places: &Places) -> Result<()> {
    let mut http2 = Http2::default();
    for step in steps {
        match step {
            Step::Close => return Ok(()),
            Step::Reset => return wire.socket().set_zero_linger(),
            _ => act(&mut wire, step, &mut http2, record, places).await?,
        }
        wire.flush().await?;
    }
    wire.shutdown().await?;
    let _ = timeout(FAREWELL, drain(&mut wire)).await;
    Ok(())
}

async fn act<W: Wire>(
    wire: &mut W,
    step: &Step,
    http2: &mut Http2,
    record: &Record,
    places: &Places,
) -> Result<()> {
    let filled = |bytes: &Bytes| bytes.filled(places);
    match step {
        Step::Read => {
            let head = read_head(wire).await?;
            // Anything else is not a request, for example a TLS ClientHello.
            if head.ends_with(b"\r\n\r\n") {
                record.add(Request::of_head(&head));
            }
        }
        Step::Take(most) => {
            // The number of bytes does not matter.
            let _ = wire.read(&mut vec![0; *most]).await?;
        }
        Step::Write(bytes) => wire.write_all(&filled(bytes)).await?,
        Step::Repeat { bytes, times } => {
            wire.write_all(&filled(bytes).repeat(usize::try_from(*times).expect("a small number"))).await?;
        }
        Step::Endless(bytes) => {
            let block = filled(bytes).repeat((16 << 10) / bytes.0.len().max(1) + 1);
            loop {
                wire.write_all(&block).await?;
            }
        }
        Step::Drip { bytes, every } => {
            for byte in filled(bytes) {
                sleep(Duration::from_millis(*every)).await;
                wire.write_all(&[byte]).await?;
                wire.flush().await?;
            }
        }
        Step::Wait(millis) => sleep(Duration::from_millis(*millis)).await,
        Step::Hang => drain(wire).await?,
        Step::HalfClose => wire.shutdown().await?,
        Step::Request => record.add(http2.request(wire).await?),
        Step::Close | Step::Reset => {}
        Step::Settings(_)
        | Step::Headers { .. }
        | Step::Data { .. }
        | Step::ResetStream(_)
        | Step::GoAway { .. }
        | Step::Frame { .. } => wire.write_all(&frame(step, http2.stream, places)).await?,
    }
    Ok(())
}

/// Encodes the frame that a step sends; `current` is the stream of the request.
fn frame(step: &Step, current: u32, places: &Places) -> Vec<u8> {
    let filled = |bytes: &Bytes| bytes.filled(places);
    match step {
        Step::Settings(pairs) => {
            let pair = |(id, value): &(u16, u32)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
            frames::frame(frames::SETTINGS, 0, 0, &pairs.iter().flat_map(pair).collect::<Vec<_>>())
        }
        Step::Headers { fields, end } => {
            let fields: Vec<_> = fields.iter().map(|(name, value)| (filled(name), filled(value))).collect();
            frames::headers(current, &fields, *end)
        }
        Step::Data { bytes, end } => {
            let flags = if *end { frames::END_STREAM } else { 0 };
            frames::frame(frames::DATA, flags, current, &filled(bytes))
        }
        Step::ResetStream(code) => frames::frame(frames::RST_STREAM, 0, current, &code.to_be_bytes()),
        Step::GoAway { last, code } => {
            let payload = [last.to_be_bytes(), code.to_be_bytes()].concat();
            frames::frame(frames::GOAWAY, 0, 0, &payload)
        }
        Step::Frame { kind, flags, stream, bytes } => {
            frames::frame(*kind, *flags, stream.unwrap_or(current), &filled(bytes))
        }
        _ => Vec::new(),
    }
}

async fn drain<S: AsyncRead + Unpin>(stream: &mut S) -> Result<()> {
    let mut block = [0; 4096];
    while stream.read(&mut block).await? > 0 {}
    Ok(())
}
