use std::convert::{Infallible, identity};
use std::sync::Mutex;
use std::time::Duration;

use http_body_util::{BodyExt as _, Empty};
use hyper::service::service_fn;
use hyper::{Request, Response, client, server};
use hyper_util::rt::{TokioExecutor, TokioIo};

use super::*;

/// Returns a response body with these messages.
async fn body(messages: Vec<Parts>) -> MessageBody<Parts, fn(Parts) -> Parts> {
    let (sender, receiver) = mpsc::channel(messages.len().max(1));
    for message in messages {
        sender.send(Ok(message)).await.expect("the body receives");
    }
    MessageBody::of_response(receiver, Flow::default(), identity)
}

/// Checks the lengths of the frames of a message, header included.
async fn check(length: usize, expected: &[usize]) {
    let message: Bytes = (0..length).map(|index| u8::try_from(index % 251).expect("a byte")).collect();
    let (prefix, suffix) = (message.slice(..length / 2), message.slice(length / 2..));
    for parts in [encoded(|to| to.extend_from_slice(&message)), parts(prefix, suffix)] {
        let mut body = body(vec![parts]).await;
        let (mut lengths, mut bytes) = (Vec::new(), Vec::new());
        while let Some(Ok(frame)) = body.frame().await.map(|frame| frame.expect("a frame").into_data()) {
            lengths.push(frame.len());
            bytes.extend_from_slice(&frame);
        }
        assert_eq!(lengths, expected, "{length}");
        assert_eq!(bytes[..HEADER_LENGTH], header(length));
        assert!(bytes[HEADER_LENGTH..] == message, "{length}: different bytes");
    }
}

#[tokio::test]
async fn a_message_is_sent_in_as_few_frames_as_possible() {
    check(0, &[5]).await;
    check(1, &[6]).await;
    check(FRAME_SIZE - 5, &[FRAME_SIZE]).await;
    check(FRAME_SIZE - 4, &[FRAME_SIZE, 1]).await;
    check(2 * FRAME_SIZE - 3, &[FRAME_SIZE, FRAME_SIZE, 2]).await;
}

#[tokio::test(start_paused = true)]
async fn a_written_frame_restarts_the_timeout() {
    let (sender, receiver) = mpsc::channel(1);
    sender.send(Ok(encoded(|to| to.put_bytes(7, 2 * FRAME_SIZE)))).await.expect("the body receives");
    let flow = Flow::default();
    let mut body = MessageBody::of_response(receiver, flow.clone(), identity);
    assert_eq!(flow.blocked(), None);
    let mut unwritten = Vec::new();
    for _ in 0..3 {
        unwritten.push(body.frame().await.expect("a piece").expect("data"));
    }
    for frame in unwritten {
        tokio::time::advance(Duration::from_secs(29)).await;
        assert_eq!(flow.blocked(), Some(Duration::from_secs(29)));
        drop(frame);
        assert!(flow.blocked().is_none_or(|since| since.is_zero()));
    }
    assert_eq!(flow.blocked(), None, "everything is written");
}

#[tokio::test(start_paused = true)]
async fn a_message_waits_although_all_frames_so_far_are_written() {
    let mut body = body(vec![encoded(|to| to.put_bytes(7, FRAME_SIZE))]).await;
    drop(body.frame().await.expect("a piece").expect("data"));
    tokio::time::advance(Duration::from_secs(29)).await;
    assert_eq!(body.flow.blocked(), Some(Duration::from_secs(29)));
}

#[tokio::test(start_paused = true)]
async fn another_message_does_not_restart_the_timeout() {
    let (sender, receiver) = mpsc::channel(2);
    let flow = Flow::default();
    let mut body = MessageBody::of_response(receiver, flow.clone(), identity);
    let mut unwritten = Vec::new();
    for blocked in [0, 29] {
        sender.send(Ok(encoded(|to| to.put_u8(7)))).await.expect("the body receives");
        unwritten.push(body.frame().await.expect("a piece").expect("data"));
        assert_eq!(flow.blocked(), Some(Duration::from_secs(blocked)));
        tokio::time::advance(Duration::from_secs(29)).await;
    }
    drop((body, unwritten));
    assert_eq!(flow.blocked(), None);
}

#[tokio::test(start_paused = true)]
async fn nothing_waits_after_a_message_is_dropped() {
    let mut body = body(vec![encoded(|to| to.put_bytes(7, 3 * FRAME_SIZE))]).await;
    let flow = body.flow.clone();
    let frame = body.frame().await.expect("a piece").expect("data");
    drop(body);
    assert!(flow.blocked().is_some());
    drop(frame);
    assert_eq!(flow.blocked(), None);
}

/// Waits until the task of the connection has nothing to do.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn http2_drops_the_bytes_that_it_has_written_and_those_of_a_stream_that_is_reset() {
    const WINDOW: u32 = 20_000;
    let (sender, receiver) = mpsc::channel(1);
    let flow = Flow::default();
    let body = Mutex::new(Some(MessageBody::of_response(receiver, flow.clone(), identity)));
    let (near, far) = tokio::io::duplex(1 << 20);
    tokio::spawn(async move {
        let respond = service_fn(move |_| {
            let body = body.lock().expect("one request").take().expect("one request");
            async move { Ok::<_, Infallible>(Response::new(body)) }
        });
        server::conn::http2::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(far), respond)
            .await
    });
    let (mut requests, connection) = client::conn::http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(WINDOW)
        .handshake(TokioIo::new(near))
        .await
        .expect("a connection");
    tokio::spawn(connection);
    let request = Request::new(Empty::<Bytes>::new());
    let mut response = requests.send_request(request).await.expect("a response").into_body();
    for length in [0, 5, 300, 2_000, 40_000] {
        sender.send(Ok(encoded(|to| to.put_bytes(7, length)))).await.expect("the body receives");
        let mut read = 0;
        while read < HEADER_LENGTH + length {
            read += response.frame().await.expect("a frame").expect("data").into_data().expect("data").len();
        }
        settle().await;
        assert_eq!(flow.blocked(), None, "{length}");
    }
    sender.send(Ok(encoded(|to| to.put_bytes(7, 100_000)))).await.expect("the body receives");
    settle().await;
    assert!(flow.blocked().is_some(), "the window is used up");
    drop(response);
    settle().await;
    assert_eq!(flow.blocked(), None);
}

#[tokio::test]
async fn both_parts_are_one_message_in_frames_of_limited_size() {
    let large = Bytes::from(vec![7; 3 * FRAME_SIZE]);
    let messages = vec![
        parts(large.clone(), Bytes::from_static(b"suffix")),
        parts(Bytes::from_static(b"x"), Bytes::new()),
    ];
    let mut body = body(messages).await;
    let (mut content, mut trailers) = (Vec::new(), None);
    while let Some(frame) = body.frame().await {
        match frame.expect("a frame").into_data() {
            Ok(data) => {
                assert!(data.len() <= FRAME_SIZE);
                content.extend_from_slice(&data);
            }
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    assert_eq!(trailers.expect("trailers")["grpc-status"], "0");
    let whole = |message: &[u8]| encoded(|to| to.extend_from_slice(message)).concat();
    assert!(content == [whole(&[&large[..], b"suffix"].concat()), whole(b"x")].concat());
}

#[tokio::test]
async fn the_status_of_a_response_is_sent_as_trailers_and_a_request_has_none() {
    for (is_request, expected) in [(false, Some("10")), (true, None)] {
        let (sender, receiver) = mpsc::channel::<Result<Parts, Status>>(2);
        sender.send(Ok(encoded(|to| to.put_u8(7)))).await.expect("the body receives");
        sender.send(Err(Status::aborted("superseded"))).await.expect("the body receives");
        let body = match is_request {
            true => MessageBody::of_request(receiver, identity),
            false => MessageBody::of_response(receiver, Flow::default(), identity),
        };
        let collected = body.collect().await.expect("a complete body");
        let status = collected.trailers().map(|trailers| trailers["grpc-status"].clone());
        assert_eq!(status.as_ref().and_then(|status| status.to_str().ok()), expected);
        assert_eq!(collected.to_bytes(), &b"\0\0\0\0\x01\x07"[..]);
    }
}
