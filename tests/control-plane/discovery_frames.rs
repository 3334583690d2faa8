//! A plaintext client that writes HTTP/2 frames itself, to control flow-control windows.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{Instant, timeout_at};
use xds::{Request, Variant};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
/// Identifier of the setting SETTINGS_INITIAL_WINDOW_SIZE.
const INITIAL_WINDOW: u16 = 4;

/// A connection with one stream.
pub(crate) struct Frames {
    read: OwnedReadHalf,
    write: OwnedWriteHalf,
    unread: Vec<u8>,
}

impl Frames {
    /// Connects, opens the stream with this initial window, and sends the first request.
    pub(crate) async fn open(address: SocketAddr, window: u32, first: &Request) -> Self {
        let (read, write) = TcpStream::connect(address).await.expect("a connection").into_split();
        let mut frames = Self { read, write, unread: Vec::new() };
        frames.write.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.expect("room");
        let settings = [&INITIAL_WINDOW.to_be_bytes()[..], &window.to_be_bytes()].concat();
        frames.send(SETTINGS, 0, 0, &settings).await;
        // HPACK: POST and http; then :path, :authority and content-type by their index, and te by
        // name.
        let text = |head: &[u8], text: &str| {
            let length = u8::try_from(text.len()).expect("short");
            [head, &[length], text.as_bytes()].concat()
        };
        let head = [
            vec![0x83, 0x86],
            text(&[0x04], Variant::Sotw.path()),
            text(&[0x01], "discovery.test"),
            text(&[0x0f, 0x10], "application/grpc"),
            text(b"\x00\x02te", "trailers"),
        ];
        frames.send(HEADERS, END_HEADERS, 1, &head.concat()).await;
        let message = first.encode(Variant::Sotw);
        let length = u32::try_from(message.len()).expect("short").to_be_bytes();
        frames.send(DATA, 0, 1, &[&[0], &length[..], &message].concat()).await;
        frames
    }

    async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
        let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
        // Ignores errors: if the server has closed the connection, the next read shows it.
        let _ = self.write.write_all(&[head.as_slice(), payload].concat()).await;
    }

    /// Answers SETTINGS and PING, and reads for this time. Returns the number of response bytes,
    /// and whether the connection is still open. With `room`, the flow-control windows grow by this
    /// many bytes every second.
    pub(crate) async fn take(&mut self, time: Duration, room: Option<u32>) -> (usize, bool) {
        let end = Instant::now() + time;
        let mut taken = 0;
        while Instant::now() < end {
            let second = Instant::now() + Duration::from_secs(1);
            while let Ok(frame) = timeout_at(second.min(end), self.frame()).await {
                let Some((kind, flags, payload)) = frame else { return (taken, false) };
                match kind {
                    DATA => taken += payload.len(),
                    SETTINGS if flags & ACK == 0 => self.send(SETTINGS, ACK, 0, &[]).await,
                    PING if flags & ACK == 0 => self.send(PING, ACK, 0, &payload).await,
                    _ => {}
                }
            }
            if let Some(room) = room {
                for stream in [0, 1] {
                    self.send(WINDOW_UPDATE, 0, stream, &room.to_be_bytes()).await;
                }
            }
        }
        (taken, true)
    }

    /// Returns the next frame, or `None` after the last one. This function is cancel-safe.
    async fn frame(&mut self) -> Option<(u8, u8, Vec<u8>)> {
        loop {
            if let Some((head, rest)) = self.unread.split_first_chunk::<9>() {
                let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
                if rest.len() >= length {
                    let frame = (head[3], head[4], rest[..length].to_vec());
                    self.unread.drain(..9 + length);
                    return Some(frame);
                }
            }
            if !matches!(self.read.read_buf(&mut self.unread).await, Ok(1..)) {
                return None;
            }
        }
    }
}
