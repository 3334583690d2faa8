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
use super::seen::{Records, Request};
use kit::app::read_head;

/// Time to wait at the end of a script for the client to disconnect.
const FAREWELL: Duration = Duration::from_secs(3);

/// A connection that can also be reset or closed without TLS `close_notify`.
pub trait Transport: AsyncRead + AsyncWrite + Unpin + Send {
    fn socket(&self) -> &TcpStream;
}

impl Transport for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

impl Transport for TlsStream<TcpStream> {
    fn socket(&self) -> &TcpStream {
        self.get_ref().0
    }
}

/// Records the requests of one connection.
pub struct Recorder {
    records: Arc<Mutex<Records>>,
    /// The round in which the connection was recorded last.
    round: u64,
    /// The index of the connection in the records of that round.
    index: usize,
}

impl Recorder {
    /// Records a new connection.
    pub fn new(records: &Arc<Mutex<Records>>) -> Self {
        let records = Arc::clone(records);
        let (round, index) = records.lock().expect("no holder panics").add_connection();
        Self { records, round, index }
    }

    /// A connection that Envoy opened for an earlier probe, which then ended without it, counts as new
    /// when it is used.
    fn add(&mut self, request: Request) {
        let mut records = self.records.lock().expect("no holder panics");
        if records.round != self.round {
            (self.round, self.index) = records.add_connection();
        }
        records.seen[self.index].push(request);
    }
}

/// The values for `{name}` in what an application writes.
pub type Placeholders = Arc<Vec<(String, String)>>;

/// Performs `steps` and closes the connection.
///
/// # Errors
/// Any error that the client causes; it shows in the client's verdict.
pub async fn run(
    mut transport: impl Transport,
    steps: &[Step],
    recorder: &mut Recorder,
    placeholders: &Placeholders,
) -> Result<()> {
    let mut http2 = Http2::default();
    for step in steps {
        match step {
            Step::Close => return Ok(()),
            Step::Reset => return transport.socket().set_zero_linger(),
            _ => act(&mut transport, step, &mut http2, recorder, placeholders).await?,
        }
        transport.flush().await?;
    }
    transport.shutdown().await?;
    let _ = timeout(FAREWELL, drain(&mut transport)).await;
    Ok(())
}

async fn act<W: Transport>(
    transport: &mut W,
    step: &Step,
    http2: &mut Http2,
    recorder: &mut Recorder,
    placeholders: &Placeholders,
) -> Result<()> {
    let filled = |bytes: &Bytes| bytes.filled(placeholders);
    match step {
        Step::Read => {
            let head = read_head(transport).await?;
            // Anything else is not a request, for example a TLS ClientHello.
            if head.ends_with(b"\r\n\r\n") {
                recorder.add(Request::of_head(&head));
            }
        }
        Step::Take(most) => {
            // The number of bytes does not matter.
            let _ = transport.read(&mut vec![0; *most]).await?;
        }
        Step::Write(bytes) => transport.write_all(&filled(bytes)).await?,
        Step::Repeat { bytes, times } => {
            transport
                .write_all(&filled(bytes).repeat(usize::try_from(*times).expect("a small number")))
                .await?;
        }
        Step::Endless(bytes) => {
            let block = filled(bytes).repeat((16 << 10) / bytes.0.len().max(1) + 1);
            loop {
                transport.write_all(&block).await?;
            }
        }
        Step::Drip { bytes, every } => {
            for byte in filled(bytes) {
                sleep(Duration::from_millis(*every)).await;
                transport.write_all(&[byte]).await?;
                transport.flush().await?;
            }
        }
        Step::Wait(millis) => sleep(Duration::from_millis(*millis)).await,
        Step::Hang => drain(transport).await?,
        Step::HalfClose => transport.shutdown().await?,
        Step::Request => recorder.add(http2.request(transport).await?),
        Step::Close | Step::Reset => {}
        Step::Settings(_)
        | Step::Headers { .. }
        | Step::Data { .. }
        | Step::ResetStream(_)
        | Step::GoAway { .. }
        | Step::Frame { .. } => transport.write_all(&frame(step, http2.stream, placeholders)).await?,
    }
    Ok(())
}

/// Encodes the frame that a step sends; `current` is the stream of the request.
fn frame(step: &Step, current: u32, placeholders: &Placeholders) -> Vec<u8> {
    let filled = |bytes: &Bytes| bytes.filled(placeholders);
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
