use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

use super::super::frame::{Frame, FrameError, flag, kind};
use super::super::script::{block, frame, headers, settings};
use super::{Connection, PREFACE};

/// Returns a connection whose application has sent these bytes, and the other side of it.
async fn received(bytes: &[u8]) -> (Connection<DuplexStream>, DuplexStream) {
    let (client, mut application) = duplex(1 << 21);
    application.write_all(bytes).await.expect("room");
    application.shutdown().await.expect("open");
    (Connection::new(client, &[(4, 5)], 0, usize::MAX), application)
}

async fn first(bytes: &[u8]) -> Result<Frame, FrameError> {
    received(bytes).await.0.next().await
}

#[tokio::test]
async fn settings_and_pings_are_acknowledged() {
    let bytes = [settings(&[]), frame(kind::PING, 0, 0, b"12345678"), frame(99, 0, 0, b"")].concat();
    let (mut connection, mut application) = received(&bytes).await;
    assert_eq!(connection.next().await, Ok(Frame::Settings(Vec::new())));
    assert_eq!(connection.next().await, Ok(Frame::Ping(*b"12345678")));
    assert_eq!(connection.next().await, Ok(Frame::Other));
    assert_eq!(connection.next().await, Err(FrameError::Ended));
    drop(connection);
    let mut sent = Vec::new();
    application.read_to_end(&mut sent).await.expect("readable");
    let acknowledged =
        [frame(kind::SETTINGS, flag::ACK, 0, b""), frame(kind::PING, flag::ACK, 0, b"12345678")];
    assert_eq!(sent, [PREFACE, &settings(&[(4, 5)]), &acknowledged.concat()].concat());
}

#[tokio::test]
async fn header_blocks_in_several_frames() {
    let block = block(&[(":status", "200"), ("a", "b")]);
    let (one, other) = block.split_at(7);
    let parts = |stream| {
        [
            frame(kind::HEADERS, flag::END_STREAM, 1, one),
            frame(kind::CONTINUATION, flag::END_HEADERS, stream, other),
        ]
        .concat()
    };
    let Ok(Frame::Headers(headers)) = first(&parts(1)).await else { panic!("headers") };
    assert!(headers.is_end && !headers.is_truncated);
    assert_eq!(headers.fields[1], (Bytes::from("a"), Bytes::from("b")));
    assert_eq!(first(&parts(3)).await, Err(FrameError::Connection), "another stream");
    let interrupted = [frame(kind::HEADERS, 0, 1, one), frame(kind::PING, 0, 0, b"12345678")].concat();
    assert_eq!(first(&interrupted).await, Err(FrameError::Connection));
    assert_eq!(
        first(&frame(kind::CONTINUATION, flag::END_HEADERS, 1, other)).await,
        Err(FrameError::Connection)
    );
}

#[tokio::test]
async fn invalid_fields_break_the_stream() {
    for fields in [
        &[(":status", "200"), ("A", "b")][..],
        &[(":status", "200"), ("", "b")],
        &[(":status", "200"), ("a b", "c")],
        &[(":status", "200"), ("a", "b\n")],
        &[("a", "b"), (":status", "200")],
        &[(":status", "200"), (":status", "200")],
        &[(":status", "200"), (":path", "/")],
        &[(":unknown", "200")],
    ] {
        assert_eq!(first(&headers(1, fields, false)).await, Err(FrameError::Stream(1)), "{fields:?}");
    }
    assert!(first(&headers(1, &[(":path", "/"), ("a", "\t\u{e9}")], false)).await.is_ok());
    assert_eq!(
        first(&frame(kind::HEADERS, flag::END_HEADERS, 1, b"\xff")).await,
        Err(FrameError::Connection)
    );
}

#[tokio::test]
async fn limits() {
    let huge =
        ["a"; 20].map(|name| frame(kind::CONTINUATION, 0, 1, name.repeat(100_000).as_bytes())).concat();
    let block = [frame(kind::HEADERS, 0, 1, b""), huge].concat();
    let (client, mut application) = duplex(1 << 22);
    application.write_all(&block).await.expect("room");
    assert_eq!(Connection::new(client, &[], 0, usize::MAX).next().await, Err(FrameError::Connection));
    assert_eq!(first(b"\x10\0\x01\0\0\0\0\0\x01").await, Err(FrameError::Connection), "a frame above 1 MiB");
    assert_eq!(first(b"\0\0\x05\0\0\0\0\0\x01ab").await, Err(FrameError::Ended));
}
