use http_body_util::{BodyExt, Full};

use super::*;

fn outlet(length: usize) -> FlowControlledBody<Full<Bytes>> {
    let message: Vec<u8> = (0..=u8::MAX).cycle().take(length).collect();
    FlowControlledBody::new(Full::from(message), Flow::new())
}

/// Checks the lengths of the frames of a message.
async fn check(length: usize, expected: &[usize]) {
    let mut outlet = outlet(length);
    let message = outlet.body.clone().collect().await.expect("bytes").to_bytes();
    let (mut lengths, mut bytes) = (Vec::new(), Vec::new());
    while let Some(frame) = outlet.frame().await {
        let piece = frame.expect("a frame").into_data().expect("data");
        assert!(outlet.flow.blocked().is_some(), "a frame is waiting");
        lengths.push(piece.len());
        bytes.extend_from_slice(&piece);
    }
    assert_eq!(lengths, expected, "{length}");
    assert!(bytes == message, "{length}: different bytes");
    assert_eq!(outlet.flow.blocked(), None, "everything was sent");
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
    let mut outlet = outlet(3 * FRAME_SIZE);
    assert_eq!(outlet.flow.blocked(), None);
    for _ in 0..3 {
        outlet.frame().await.expect("a piece").expect("data");
        tokio::time::advance(Duration::from_secs(29)).await;
        assert_eq!(outlet.flow.blocked(), Some(Duration::from_secs(29)));
    }
}
