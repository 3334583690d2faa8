use http_body_util::BodyExt;

use super::*;

fn message(length: usize) -> Bytes {
    (0..=u8::MAX).cycle().take(length).collect()
}

/// Returns a body that is about to send these bytes and nothing else.
fn body(rest: Bytes) -> FlowControlledBody {
    let (_, responses) = mpsc::channel(1);
    FlowControlledBody { rest, ..FlowControlledBody::new(responses, Variant::Sotw, Flow::new()) }
}

/// Checks the lengths of the frames of a message.
async fn check(length: usize, expected: &[usize]) {
    let message = message(length);
    let mut body = body(message.clone());
    let (mut lengths, mut bytes) = (Vec::new(), Vec::new());
    while let Some(frame) = body.frame().await {
        let piece = frame.expect("a frame").into_data().expect("data");
        assert!(body.flow.blocked().is_some(), "a frame is waiting");
        lengths.push(piece.len());
        bytes.extend_from_slice(&piece);
    }
    assert_eq!(lengths, expected, "{length}");
    assert!(bytes == message, "{length}: different bytes");
    assert_eq!(body.flow.blocked(), None, "everything was sent");
}

#[tokio::test]
async fn last_byte_of_a_message_is_a_frame_of_its_own() {
    check(0, &[]).await;
    check(1, &[1]).await;
    check(2, &[1, 1]).await;
    check(FRAME_SIZE, &[FRAME_SIZE - 1, 1]).await;
    check(FRAME_SIZE + 1, &[FRAME_SIZE, 1]).await;
    check(2 * FRAME_SIZE + 2, &[FRAME_SIZE, FRAME_SIZE, 1, 1]).await;
}

#[tokio::test(start_paused = true)]
async fn reading_a_frame_restarts_the_timeout() {
    let mut body = body(message(3 * FRAME_SIZE));
    assert_eq!(body.flow.blocked(), None);
    for _ in 0..3 {
        body.frame().await.expect("a piece").expect("data");
        tokio::time::advance(Duration::from_secs(29)).await;
        assert_eq!(body.flow.blocked(), Some(Duration::from_secs(29)));
    }
}

#[tokio::test]
async fn responses_are_grpc_messages_and_the_status_is_sent_as_trailers() {
    let (sender, responses) = mpsc::channel(2);
    let response = Response {
        type_url: discovery::message::TypeUrl::Health,
        version: "e/1".to_owned(),
        nonce: "7".to_owned(),
        resources: Vec::new(),
        removed: Vec::new(),
    };
    let mut expected = Vec::new();
    xds::encode(response.clone(), Variant::Sotw, &mut expected);
    sender.send(Ok(Box::new(response))).await.expect("the body receives");
    sender.send(Err(Status::aborted("superseded"))).await.expect("the body receives");
    let body = FlowControlledBody::new(responses, Variant::Sotw, Flow::new());
    let collected = body.collect().await.expect("a complete body");
    let trailers = collected.trailers().expect("trailers").clone();
    assert_eq!(trailers["grpc-status"], "10");
    let bytes = collected.to_bytes();
    let length = u8::try_from(expected.len()).expect("a short message");
    assert_eq!(bytes[..HEADER_LENGTH], [0, 0, 0, 0, length]);
    assert_eq!(bytes[HEADER_LENGTH..], expected);
}
