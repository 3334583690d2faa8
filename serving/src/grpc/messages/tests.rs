use std::convert::Infallible;

use http_body_util::StreamBody;
use hyper::body::Frame;
use tonic::Code;

use super::*;

const LIMIT: usize = 1000;

/// Returns a body that arrives in chunks of this size.
fn body(content: &[u8], size: usize) -> impl Body<Data = Bytes, Error = Infallible> + Unpin {
    let chunks: Vec<_> =
        content.chunks(size).map(|chunk| Ok(Frame::data(Bytes::copy_from_slice(chunk)))).collect();
    StreamBody::new(futures_util::stream::iter(chunks))
}

fn encoded(message: &[u8]) -> Vec<u8> {
    super::super::encoded(|to| to.extend_from_slice(message)).concat()
}

#[tokio::test]
async fn messages_are_read_whatever_the_size_of_the_chunks() {
    let content = [encoded(b"one"), encoded(b""), encoded(&[7; 1000])].concat();
    for size in [1, 2, 7, 5000] {
        let mut messages = Messages::new(body(&content, size), LIMIT);
        assert_eq!(messages.next().await.unwrap(), &b"one"[..]);
        assert_eq!(messages.next().await.unwrap(), &b""[..]);
        assert_eq!(messages.next().await.unwrap().len(), 1000);
        assert_eq!(messages.next().await.unwrap_err().code(), Code::Ok);
    }
}

#[tokio::test]
async fn malformed_bodies_end_with_a_status() {
    for (content, code) in [
        (encoded(b"cut")[..6].to_vec(), Code::Internal),
        (encoded(&[7; 1001]), Code::ResourceExhausted),
        ([&[1][..], &encoded(b"x")[1..]].concat(), Code::Unimplemented),
    ] {
        let mut messages = Messages::new(body(&content, 100), LIMIT);
        assert_eq!(messages.next().await.unwrap_err().code(), code);
    }
}

#[tokio::test]
async fn trailers_are_the_status() {
    let mut trailers = HeaderMap::new();
    Status::permission_denied("no").add_header(&mut trailers).unwrap();
    let frames = vec![Ok::<_, Infallible>(Frame::data(encoded(b"x").into())), Ok(Frame::trailers(trailers))];
    let mut messages = Messages::new(StreamBody::new(futures_util::stream::iter(frames)), LIMIT);
    messages.next().await.unwrap();
    let status = messages.next().await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::PermissionDenied, "no"));
}
