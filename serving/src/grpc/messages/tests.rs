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

/// A body that begins a message of 1000 bytes and never ends it.
fn half(bytes: usize) -> impl Body<Data = Bytes, Error = Infallible> + Unpin {
    let frame = Frame::data(Bytes::from(encoded(&[7; 1000])).slice(..bytes));
    StreamBody::new(Box::pin(futures_util::StreamExt::chain(
        futures_util::stream::iter([Ok(frame)]),
        futures_util::stream::pending(),
    )))
}

fn limits(bytes: &SharedPool, last: u8) -> IncompleteLimits {
    let source = Some(std::net::IpAddr::from([10, 0, 0, last]).into());
    IncompleteLimits { bytes: bytes.clone(), source, timeout: Duration::from_secs(10) }
}

#[tokio::test(start_paused = true)]
async fn incomplete_message_has_a_deadline() {
    let bytes = SharedPool::new(2000, usize::MAX);
    let mut messages = Messages::new(half(500), LIMIT).limit_incomplete(limits(&bytes, 1));
    // A cancelled read does not extend the deadline.
    let begun = Instant::now();
    assert!(tokio::time::timeout(Duration::from_secs(6), messages.next()).await.is_err());
    assert_eq!(bytes.used(), HEADER_LENGTH + 1000, "there is memory for the whole message");
    assert_eq!(messages.next().await.unwrap_err().code(), Code::DeadlineExceeded);
    assert_eq!(begun.elapsed().as_secs(), 10);
    drop(messages);
    assert_eq!(bytes.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn idle_stream_has_no_deadline_and_complete_messages_do_not_count() {
    let bytes = SharedPool::new(10, usize::MAX);
    let content = [encoded(b"one"), encoded(b"two")].concat();
    let body = StreamBody::new(Box::pin(futures_util::StreamExt::chain(
        futures_util::stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from(content)))]),
        futures_util::stream::pending(),
    )));
    let mut messages = Messages::new(body, LIMIT).limit_incomplete(limits(&bytes, 1));
    assert_eq!(messages.next().await.unwrap(), &b"one"[..]);
    assert_eq!(messages.next().await.unwrap(), &b"two"[..]);
    assert!(tokio::time::timeout(Duration::from_secs(3600), messages.next()).await.is_err());
    assert_eq!(bytes.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn bytes_of_incomplete_messages_are_limited_for_the_source_that_has_most() {
    let bytes = SharedPool::new(4000, usize::MAX);
    let moment = Duration::from_secs(1);
    let mut honest = Messages::new(half(500), LIMIT).limit_incomplete(limits(&bytes, 1));
    assert!(tokio::time::timeout(moment, honest.next()).await.is_err());
    let mut greedy = Vec::new();
    for _ in 0..5 {
        let mut messages = Messages::new(half(500), LIMIT).limit_incomplete(limits(&bytes, 2));
        let read = tokio::time::timeout(moment, messages.next()).await;
        assert!(read.is_err() || read.unwrap().unwrap_err().code() == Code::ResourceExhausted);
        greedy.push(messages);
    }
    assert!(bytes.used() <= 4000);
    assert!(tokio::time::timeout(moment, honest.next()).await.is_err(), "it is still awaited");
}
