use http_body_util::StreamBody;
use hyper::body::Frame;
use tonic::Code;

use super::*;

/// Reads a body that arrives in pieces of `piece` bytes: the messages, and the error code if it
/// fails.
async fn read(bytes: &[u8], piece: usize) -> (Vec<Vec<u8>>, Option<Code>) {
    let pieces: Vec<Result<Frame<Bytes>, Status>> =
        bytes.chunks(piece).map(|piece| Ok(Frame::data(Bytes::copy_from_slice(piece)))).collect();
    let mut requests = Requests::new(StreamBody::new(futures_util::stream::iter(pieces)));
    let mut messages = Vec::new();
    loop {
        match requests.message().await {
            Ok(Some(message)) => messages.push(message.to_vec()),
            Ok(None) => return (messages, None),
            Err(status) => return (messages, Some(status.code())),
        }
    }
}

#[tokio::test]
async fn messages_are_reassembled_from_any_fragments() {
    type Row = (&'static [u8], &'static [&'static [u8]], Option<Code>);
    let rows: [Row; 7] = [
        (b"", &[], None),
        (b"\0\0\0\0\x02ab\0\0\0\0\0\0\0\0\0\x01c", &[b"ab", b"", b"c"], None),
        (b"\0\0\0\0\x02ab\0\0", &[b"ab"], Some(Code::InvalidArgument)),
        (b"\0\0\0\0\x02a", &[], Some(Code::InvalidArgument)),
        (b"\x01\0\0\0\x02ab", &[], Some(Code::Unimplemented)),
        (b"\0\0\0\0\x01a\0\0\x40\0\x01", &[b"a"], Some(Code::ResourceExhausted)),
        (b"\0\xff\xff\xff\xff", &[], Some(Code::ResourceExhausted)),
    ];
    for (bytes, messages, end) in rows {
        for piece in [1, 3, 100] {
            let expected = (messages.iter().map(|message| message.to_vec()).collect(), end);
            assert_eq!(read(bytes, piece).await, expected, "{bytes:?} by {piece}");
        }
    }
}
