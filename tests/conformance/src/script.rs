//! Plays the steps of a case on one connection.

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

/// At the end of its script an application waits so long for the other side to close.
const FAREWELL: Duration = Duration::from_secs(3);

/// A connection that can also be ended without manners.
pub trait Wire: AsyncRead + AsyncWrite + Unpin + Send {
    /// The socket under it.
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

/// Where the requests of one connection are written down.
#[derive(Clone)]
pub struct Record {
    /// All connections of the application.
    pub seen: Arc<Mutex<Seen>>,
    /// This one's place.
    pub index: usize,
}

impl Record {
    fn add(&self, request: Request) {
        // What an application has been made to forget is not written down any more.
        if let Some(connection) = self.seen.lock().expect("no holder panics").get_mut(self.index) {
            connection.push(request);
        }
    }
}

/// What is filled in for `{name}` in what an application writes.
pub type Places = Arc<Vec<(String, String)>>;

/// Plays `steps`, and says goodbye.
///
/// # Errors
/// Whatever the other side did to the connection; its verdict tells.
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
            // Anything else is no request: the ClientHello of TLS, say.
            if head.ends_with(b"\r\n\r\n") {
                record.add(Request::of_head(&head));
            }
        }
        Step::Take(most) => {
            // How much it was does not matter.
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

/// The frame that a step sends; `current` is the stream of the request.
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
