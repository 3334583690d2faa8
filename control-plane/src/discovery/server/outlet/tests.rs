use http_body_util::{BodyExt, Full};

use super::*;

fn outlet(length: usize) -> Outlet<Full<Bytes>> {
    let message: Vec<u8> = (0..=u8::MAX).cycle().take(length).collect();
    Outlet::new(Full::from(message), Flow::new())
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
async fn a_messages_last_byte_is_a_piece_of_its_own() {
    check(0, &[]).await;
    check(1, &[1]).await;
    check(2, &[1, 1]).await;
    check(PIECE, &[PIECE - 1, 1]).await;
    check(PIECE + 1, &[PIECE, 1]).await;
    check(2 * PIECE + 2, &[PIECE, PIECE, 1, 1]).await;
}

#[tokio::test(start_paused = true)]
async fn whoever_takes_a_piece_has_time_again() {
    let mut outlet = outlet(3 * PIECE);
    assert_eq!(outlet.flow.blocked(), None);
    for _ in 0..3 {
        outlet.frame().await.expect("a piece").expect("data");
        tokio::time::advance(Duration::from_secs(29)).await;
        assert_eq!(outlet.flow.blocked(), Some(Duration::from_secs(29)));
    }
}
