use std::net::IpAddr;

use super::*;
use crate::http_server::{Rate, Reserved};

fn connections(limits: Limits) -> Arc<Mutex<Connections>> {
    Arc::new(Mutex::new(Connections::new(limits)))
}

/// Returns the source of 192.0.2.`last`.
fn source(last: u8) -> Option<Source> {
    Some(IpAddr::from([192, 0, 2, last]).into())
}

#[tokio::test(start_paused = true)]
async fn the_connection_that_waits_longest_is_evicted() {
    let connections = connections(Limits { connections: 2, ..Limits::ONE_REQUEST });
    let admit = |connections| super::admit(connections, None);
    let first = admit(&connections).unwrap();
    first.slot.set_busy();
    let second = admit(&connections).unwrap();
    let third = admit(&connections).unwrap();
    assert!(second.evicted.is_cancelled());
    third.slot.set_busy();
    assert!(admit(&connections).is_err(), "both process a request");

    drop(first);
    let fourth = admit(&connections).unwrap();
    fourth.slot.set_busy();
    fourth.slot.release();
    let fifth = admit(&connections).unwrap();
    fifth.slot.set_idle();
    assert!(admit(&connections).is_err(), "the response may not have been read");
    tokio::time::advance(RESPONSE_TIME).await;
    third.slot.set_idle();
    tokio::time::advance(RESPONSE_TIME).await;
    let sixth = admit(&connections);
    assert!(fifth.evicted.is_cancelled() && !third.evicted.is_cancelled());
    drop((second, third, fourth, fifth, sixth));
    assert!(lock(&connections).open.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_source_at_its_limit_evicts_its_own_connections_only() {
    let limits = Limits { connections: 10, source_connections: 2, ..Limits::ONE_REQUEST };
    let connections = connections(limits);
    let other = admit(&connections, source(1)).unwrap();
    let first = admit(&connections, source(2)).unwrap();
    let second = admit(&connections, source(2)).unwrap();
    let third = admit(&connections, source(2)).unwrap();
    assert!(first.evicted.is_cancelled() && !other.evicted.is_cancelled());
    second.slot.set_busy();
    third.slot.set_busy();
    assert_eq!(admit(&connections, source(2)).err(), Some(Refused::Full));
    second.slot.set_receiving();
    assert!(admit(&connections, source(2)).is_ok() && second.evicted.is_cancelled());
    assert!(admit(&connections, source(3)).is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_source_with_the_most_connections_loses_one() {
    let connections = connections(Limits { connections: 3, ..Limits::ONE_REQUEST });
    let oldest = admit(&connections, source(1)).unwrap();
    let first = admit(&connections, source(2)).unwrap();
    let second = admit(&connections, source(2)).unwrap();
    let third = admit(&connections, source(3)).unwrap();
    assert!(first.evicted.is_cancelled());
    let fourth = admit(&connections, source(4)).unwrap();
    assert!(oldest.evicted.is_cancelled(), "all sources have one");
    assert!([&second, &third, &fourth].iter().all(|kept| !kept.evicted.is_cancelled()));
}

#[tokio::test(start_paused = true)]
async fn a_reserved_slot_is_used_when_all_others_are_busy() {
    let reserved = Reserved { connections: 1, paths: &["/live"] };
    let connections = connections(Limits { connections: 1, reserved, ..Limits::ONE_REQUEST });
    let busy = admit(&connections, source(1)).unwrap();
    assert!(!busy.slot.is_reserved());
    busy.slot.set_busy();
    let first = admit(&connections, source(1)).unwrap();
    let second = admit(&connections, source(2)).unwrap();
    assert!(first.evicted.is_cancelled() && second.slot.is_reserved());
    second.slot.set_busy();
    assert_eq!(admit(&connections, source(2)).err(), Some(Refused::Full));
}

#[tokio::test(start_paused = true)]
async fn a_source_that_opens_connections_too_fast_is_refused() {
    let source_rate = Some(Rate { per_second: 1, burst: 2 });
    let connections = connections(Limits { source_rate, ..Limits::ONE_REQUEST });
    assert!(admit(&connections, source(1)).is_ok() && admit(&connections, source(1)).is_ok());
    assert_eq!(admit(&connections, source(1)).err(), Some(Refused::Rate));
    assert!(admit(&connections, source(2)).is_ok());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(admit(&connections, source(1)).is_ok());
}
