use std::net::IpAddr;

use super::*;

/// Returns the source of 192.0.2.`last`.
fn source(last: u8) -> Source {
    IpAddr::from([192, 0, 2, last]).into()
}

#[tokio::test(start_paused = true)]
async fn concurrent_handshakes_of_a_source_are_limited() {
    let handshakes = Handshakes::new();
    let mut held: Vec<_> = (0..IN_PROGRESS).map(|_| handshakes.begin(source(1)).unwrap()).collect();
    assert!(handshakes.begin(source(1)).is_none() && handshakes.begin(source(2)).is_some());
    held.pop().unwrap().succeeded();
    assert!(handshakes.begin(source(1)).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_source_whose_handshakes_fail_is_limited() {
    let handshakes = Handshakes::new();
    for _ in 0..1000 {
        handshakes.begin(source(1)).unwrap().succeeded();
    }
    for _ in 0..FAILURES {
        drop(handshakes.begin(source(1)).unwrap());
    }
    assert!(handshakes.begin(source(1)).is_none() && handshakes.begin(source(2)).is_some());
    tokio::time::advance(FAILURE_INTERVAL).await;
    drop(handshakes.begin(source(1)).unwrap());
    assert!(handshakes.begin(source(1)).is_none());
}
