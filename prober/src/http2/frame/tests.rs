use super::{Frame, FrameError, FrameHead, flag, kind};

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Result<Frame, FrameError> {
    FrameHead { length: payload.len(), kind, flags, stream }.frame(payload)
}

#[test]
fn heads() {
    let mut out = Vec::new();
    FrameHead::write(kind::DATA, flag::END_STREAM, 5, b"abc", &mut out);
    assert_eq!(out, b"\0\0\x03\0\x01\0\0\0\x05abc");
    let head = FrameHead::parse(*b"\x01\0\x03\0\x01\x80\0\0\x05");
    assert_eq!(head, FrameHead { length: 65_539, kind: kind::DATA, flags: flag::END_STREAM, stream: 5 });
}

#[test]
fn frames() {
    let broken = || Err(FrameError::Connection);
    for (kind, flags, stream, payload, expected) in [
        (kind::DATA, 0, 1, &b"ab"[..], Ok(Frame::Data { stream: 1, data: b"ab".to_vec(), is_end: false })),
        (
            kind::DATA,
            flag::PADDED | flag::END_STREAM,
            1,
            b"\x01ab",
            Ok(Frame::Data { stream: 1, data: b"a".to_vec(), is_end: true }),
        ),
        (kind::DATA, flag::PADDED, 1, b"\x03ab", broken()),
        (kind::DATA, flag::PADDED, 1, b"", broken()),
        (kind::DATA, 0, 0, b"ab", broken()),
        (kind::RST_STREAM, 0, 1, b"\0\0\0\x07", Ok(Frame::Reset { stream: 1, code: 7 })),
        (kind::RST_STREAM, 0, 0, b"\0\0\0\x07", broken()),
        (kind::RST_STREAM, 0, 1, b"\0\0\0", broken()),
        (kind::SETTINGS, 0, 0, b"\0\x04\0\0\0\x05", Ok(Frame::Settings(vec![(4, 5)]))),
        (kind::SETTINGS, 0, 0, b"\0\x04\xff\0\0\x05", broken()),
        (kind::SETTINGS, 0, 0, b"\0\x04\0\0\0", broken()),
        (kind::SETTINGS, 0, 1, b"", broken()),
        (kind::SETTINGS, flag::ACK, 0, b"", Ok(Frame::SettingsAck)),
        (kind::SETTINGS, flag::ACK, 0, b"\0\x04\0\0\0\x05", broken()),
        (kind::PING, 0, 0, b"12345678", Ok(Frame::Ping(*b"12345678"))),
        (kind::PING, flag::ACK, 0, b"12345678", Ok(Frame::Other)),
        (kind::PING, 0, 0, b"1234567", broken()),
        (kind::PING, 0, 1, b"12345678", broken()),
        (kind::GOAWAY, 0, 0, b"\x80\0\0\x03\0\0\0\x01x", Ok(Frame::GoAway { last_stream: 3, code: 1 })),
        (kind::GOAWAY, 0, 0, b"\0\0\0\x03", broken()),
        (kind::WINDOW_UPDATE, 0, 0, b"\x80\0\0\x03", Ok(Frame::WindowUpdate { stream: 0, increment: 3 })),
        (kind::WINDOW_UPDATE, 0, 0, b"\0\0\0\0", broken()),
        (kind::WINDOW_UPDATE, 0, 1, b"\0\0\0\0", Err(FrameError::Stream(1))),
        (kind::PRIORITY, 0, 1, b"\0\0\0\0\x01", Ok(Frame::Other)),
        (kind::PRIORITY, 0, 1, b"\0", broken()),
        (kind::PUSH_PROMISE, 0, 1, b"\0\0\0\x02", Ok(Frame::PushPromise)),
        (99, 0, 0, b"anything", Ok(Frame::Other)),
    ] {
        assert_eq!(frame(kind, flags, stream, payload), expected, "{kind} {flags} {stream} {payload:?}");
    }
}

#[test]
fn parts_of_a_header_block() {
    let block =
        |flags, stream, payload| FrameHead { length: 0, kind: kind::HEADERS, flags, stream }.block(payload);
    assert_eq!(block(0, 1, b"abc"), Ok(&b"abc"[..]));
    assert_eq!(block(flag::PADDED | flag::PRIORITY, 1, b"\x01\0\0\0\0\0abc"), Ok(&b"ab"[..]));
    assert_eq!(block(flag::PADDED, 1, b"\x04abc"), Err(FrameError::Stream(1)));
    assert_eq!(block(flag::PRIORITY, 1, b"abc"), Err(FrameError::Ended));
    assert_eq!(block(0, 0, b"abc"), Err(FrameError::Connection));
}
