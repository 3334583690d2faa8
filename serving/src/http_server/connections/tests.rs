use super::*;

#[tokio::test(start_paused = true)]
async fn the_connection_that_waits_longest_is_evicted() {
    let connections = Arc::new(Mutex::new(Connections::new(2)));
    let first = admit(&connections).unwrap();
    first.slot.set_busy();
    let second = admit(&connections).unwrap();
    let third = admit(&connections).unwrap();
    assert!(second.evicted.is_cancelled());
    third.slot.set_busy();
    assert!(admit(&connections).is_none(), "both process a request");

    drop(first);
    let fourth = admit(&connections).unwrap();
    fourth.slot.set_busy();
    fourth.slot.release();
    let fifth = admit(&connections).unwrap();
    fifth.slot.set_idle();
    assert!(admit(&connections).is_none(), "the response may not have been read");
    tokio::time::advance(RESPONSE_TIME).await;
    third.slot.set_idle();
    tokio::time::advance(RESPONSE_TIME).await;
    let sixth = admit(&connections);
    assert!(fifth.evicted.is_cancelled() && !third.evicted.is_cancelled());
    drop((second, third, fourth, fifth, sixth));
    assert!(lock(&connections).open.is_empty());
}
