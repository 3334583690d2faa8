use std::net::IpAddr;

use super::*;

fn source(last: u8) -> Source {
    IpAddr::from([10, 0, 0, last]).into()
}

fn admit(
    connections: &mut Connections<ConnectionId>,
    last: u8,
) -> Result<(ConnectionId, Option<ConnectionId>), AllInUse> {
    let number = connections.next;
    connections.admit(source(last), number)
}

/// Admits a connection of each source and opens a stream on those with `true`. The data of a connection
/// is its number.
fn connections(limit: usize, sources: &[(u8, bool)]) -> Connections<ConnectionId> {
    let mut connections = Connections::new(limit);
    for (last, has_stream) in sources {
        let (id, replaced) = admit(&mut connections, *last).expect("a free connection");
        assert_eq!(replaced, None);
        if *has_stream {
            connections.stream_opened(id);
        }
    }
    connections
}

#[test]
fn newcomer_replaces_a_connection_without_a_stream_of_the_greediest_source() {
    let full = [(1, true), (1, false), (2, true), (2, false), (2, false), (3, false)];
    let mut connections = connections(full.len(), &full);
    assert_eq!(admit(&mut connections, 4), Ok((6, Some(3))));
    assert_eq!(admit(&mut connections, 5), Ok((7, Some(4))));
    assert_eq!(admit(&mut connections, 6), Ok((8, Some(1))));
    // All sources have one.
    assert_eq!(admit(&mut connections, 7), Err(AllInUse));
    assert!(connections.has_streams(0) && !connections.has_streams(4));
}

#[test]
fn flooder_does_not_replace_the_connections_of_others() {
    let mut connections = connections(4, &[(1, false), (1, false), (2, false), (3, true)]);
    for _ in 0..10 {
        assert_eq!(admit(&mut connections, 1), Err(AllInUse));
    }
    connections.remove(3);
    assert_eq!(admit(&mut connections, 1), Ok((4, None)));
    assert_eq!(admit(&mut connections, 4), Ok((5, Some(0))));
}

#[test]
fn connections_with_streams_are_replaced_only_beyond_the_share_of_a_source() {
    let all = |number| vec![(1, true); number];
    let mut protected = connections(PROTECTED, &all(PROTECTED));
    assert_eq!(admit(&mut protected, 2), Err(AllInUse));
    let mut connections = connections(PROTECTED + 1, &all(PROTECTED + 1));
    let newest = u64::try_from(PROTECTED).expect("few");
    assert_eq!(admit(&mut connections, 2), Ok((newest + 1, Some(newest))));
    assert_eq!(admit(&mut connections, 3), Err(AllInUse));
}

#[test]
fn connection_counts_as_unused_again_after_its_last_stream() {
    let mut connections = connections(2, &[(1, true), (1, true)]);
    connections.stream_opened(0);
    connections.stream_closed(0);
    assert!(connections.has_streams(0));
    connections.stream_closed(0);
    assert!(!connections.has_streams(0));
    assert_eq!(admit(&mut connections, 2), Ok((2, Some(0))));
    // The end of a replaced connection has no effect.
    connections.stream_closed(0);
    connections.remove(0);
    assert!(connections.is_full());
    connections.remove(1);
    connections.remove(2);
    assert!(connections.sources.is_empty() && !connections.is_full());
}
