use super::*;

#[test]
fn the_oldest_without_a_complete_head_goes() {
    let connections = Arc::new(Mutex::new(Connections::new(2)));
    let first = admit(&connections).unwrap();
    first.slot.head_is_complete();
    let mut second = admit(&connections).unwrap();
    let third = admit(&connections).unwrap();
    assert_eq!(second.evicted.try_recv(), Ok(()));
    third.slot.head_is_complete();
    assert!(admit(&connections).is_none(), "both have a complete head");

    drop(first);
    let fourth = admit(&connections).unwrap();
    fourth.slot.head_is_complete();
    fourth.slot.leave();
    let fifth = admit(&connections);
    assert!(fifth.is_some(), "a connection that left is not counted");
    drop((second, third, fourth, fifth));
    assert!(lock(&connections).open.is_empty());
}
