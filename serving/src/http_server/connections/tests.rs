use std::net::{IpAddr, Ipv6Addr};

use super::*;
use crate::http_server::{Rate, Reserved};

const SECOND: Duration = Duration::from_secs(1);

/// Returns the source of 192.0.2.`last`.
fn source(last: u8) -> Option<Source> {
    Some(IpAddr::from([192, 0, 2, last]).into())
}

fn is_evicted(admitted: &Admitted) -> bool {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    std::pin::pin!(admitted.slot.evicted()).poll(&mut context).is_ready()
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_evicted_while_it_waits_for_a_request() {
    let mut connections = Connections::new(Limits { connections: 2, ..Limits::ONE_REQUEST });
    let first = connections.admit(None, false).unwrap();
    first.slot.set_busy();
    let second = connections.admit(None, false).unwrap();
    let third = connections.admit(None, false).unwrap();
    assert!(is_evicted(&second) && !is_evicted(&first));
    third.slot.set_busy();
    assert!(connections.admit(None, false).is_err(), "both process a request");

    drop(first);
    let fourth = connections.admit(None, false).unwrap();
    fourth.slot.set_busy();
    fourth.slot.release();
    assert!(!is_evicted(&fourth));
    let fifth = connections.admit(None, false).unwrap();
    fifth.slot.set_idle(SECOND);
    assert!(connections.admit(None, false).is_err(), "the response may not have been read");
    tokio::time::advance(SECOND).await;
    third.slot.set_idle(SECOND);
    tokio::time::advance(SECOND).await;
    let sixth = connections.admit(None, false).unwrap();
    assert!(is_evicted(&fifth) && !is_evicted(&third));
    sixth.slot.evict();
    assert!(is_evicted(&sixth));
    drop((second, third, fourth, fifth, sixth));
    assert_eq!(connections.open.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_source_at_its_limit_loses_its_own_connection() {
    let limits = Limits { connections: 10, source_connections: 1, ..Limits::ONE_REQUEST };
    let mut connections = Connections::new(limits);
    let other = connections.admit(source(1), false).unwrap();
    let first = connections.admit(source(2), false).unwrap();
    let second = connections.admit(source(2), false).unwrap();
    assert!(is_evicted(&first) && !is_evicted(&second) && !is_evicted(&other));
}

#[tokio::test(start_paused = true)]
async fn a_reserved_slot_is_used_when_all_others_are_busy() {
    let reserved = Reserved { connections: 1, paths: &["/live"] };
    let mut connections = Connections::new(Limits { connections: 1, reserved, ..Limits::ONE_REQUEST });
    let busy = connections.admit(source(1), false).unwrap();
    assert!(!busy.is_reserved);
    busy.slot.set_busy();
    let first = connections.admit(source(1), false).unwrap();
    let second = connections.admit(source(2), false).unwrap();
    assert!(is_evicted(&first) && second.is_reserved);
    second.slot.set_busy();
    assert_eq!(connections.admit(source(2), false).err(), Some(Refused::Full));
}

#[tokio::test(start_paused = true)]
async fn a_source_that_opens_connections_too_fast_is_refused() {
    let source_rate = Some(Rate { per_second: 1, burst: 2 });
    let mut connections = Connections::new(Limits { source_rate, ..Limits::ONE_REQUEST });
    assert!(connections.admit(source(1), false).is_ok() && connections.admit(source(1), false).is_ok());
    assert_eq!(connections.admit(source(1), false).err(), Some(Refused::Rate));
    assert!(connections.admit(source(2), false).is_ok());
    tokio::time::advance(SECOND).await;
    assert!(connections.admit(source(1), false).is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_rate_of_a_trusted_client_is_not_that_of_its_network() {
    let source_rate = Some(Rate { per_second: 1, burst: 2 });
    let limits = Limits { source_rate, trusted_connections: 2, connections: 8, ..Limits::ONE_REQUEST };
    let mut connections = Connections::new(limits);
    let peer = |last: u16| Peer::Tcp((Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last), 1).into());
    let admitted: Vec<_> = (2..5).map(|last| connections.admit_peer(peer(last), false).map(drop)).collect();
    assert_eq!(admitted, [Ok(()), Ok(()), Err(Refused::Rate)]);
    assert!(connections.admit_peer(peer(1), true).is_ok());
}

#[tokio::test(start_paused = true)]
async fn connections_in_use_of_two_sources_do_not_keep_a_third_out() {
    let limits = Limits { connections: 6, source_connections: 4, ..Limits::KEEP_ALIVE };
    let mut connections = Connections::new(limits);
    let hostile: Vec<_> =
        [1, 2, 1, 2, 1, 2].map(|last| connections.admit(source(last), false).unwrap()).into();
    for admitted in &hostile {
        admitted.slot.set_busy();
        admitted.slot.set_idle(SECOND);
    }
    let first = connections.admit(source(3), false).unwrap();
    first.slot.set_busy();
    let second = connections.admit(source(3), false).unwrap();
    assert_eq!(hostile.iter().filter(|admitted| is_evicted(admitted)).count(), 2);
    second.slot.set_busy();
    assert_eq!(connections.admit(source(1), false).err(), Some(Refused::Full), "each source has its share");
    assert!(!is_evicted(&first) && !is_evicted(&second));
}

#[tokio::test(start_paused = true)]
async fn trusted_clients_have_slots_that_no_other_client_gets() {
    let limits = Limits { connections: 4, trusted_connections: 2, ..Limits::KEEP_ALIVE };
    let mut connections = Connections::new(limits);
    // Many addresses with one connection each, which are in use.
    let mut hostile: Vec<_> = (1..3).map(|last| connections.admit(source(last), false).unwrap()).collect();
    hostile.iter().for_each(|admitted| assert!(admitted.slot.set_busy()));
    assert_eq!(connections.admit(source(3), false).err(), Some(Refused::Full));
    let known = connections.admit(source(9), true).unwrap();
    assert!(known.is_trusted && known.slot.set_busy());

    drop(hostile.pop());
    let mut proven = connections.admit(source(9), false).unwrap();
    assert!(!proven.is_trusted);
    proven.trust(source(9));
    assert!(proven.is_trusted && proven.slot.set_busy());
    hostile.push(connections.admit(source(4), false).expect("the slot of before is free"));
    assert!(hostile.iter().all(|admitted| !is_evicted(admitted) && admitted.slot.set_busy()));
    assert!(!is_evicted(&known) && !is_evicted(&proven));
    assert_eq!(connections.admit(source(9), true).err(), Some(Refused::Full), "it has its part");
}
