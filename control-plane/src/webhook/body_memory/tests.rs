use std::net::IpAddr;

use super::*;

/// Returns the source of 192.0.2.`last`.
fn source(last: u8) -> Option<Source> {
    Some(IpAddr::from([192, 0, 2, last]).into())
}

#[test]
fn the_source_that_holds_the_most_loses_its_oldest_body() {
    let memory = BodyMemory::new(100);
    let (first, second, third) = (memory.open(source(1)), memory.open(source(1)), memory.open(source(2)));
    assert_eq!(first.grow(40), Ok(()));
    assert_eq!(second.grow(30), Ok(()));
    assert_eq!(third.grow(30), Ok(()));
    assert_eq!(third.grow(10), Ok(()));
    assert!(first.discard.is_cancelled() && !second.discard.is_cancelled());
    assert_eq!((first.grow(1), first.begin_review()), (Err(Exhausted), Err(Exhausted)));
}

#[test]
fn a_source_that_holds_the_most_does_not_displace_others() {
    let memory = BodyMemory::new(100);
    let (small, large) = (memory.open(source(1)), memory.open(source(2)));
    assert_eq!((small.grow(30), large.grow(70)), (Ok(()), Ok(())));
    assert_eq!(large.grow(1), Err(Exhausted));
    assert!(!small.discard.is_cancelled());
}

#[test]
fn a_body_under_review_is_kept_and_its_memory_released_on_drop() {
    let memory = BodyMemory::new(100);
    let (large, small) = (memory.open(source(1)), memory.open(source(2)));
    assert_eq!((large.grow(90), large.begin_review()), (Ok(()), Ok(())));
    assert_eq!(small.grow(20), Err(Exhausted));
    drop(large);
    let small = memory.open(source(2));
    assert_eq!(small.grow(100), Ok(()));
    drop(small);
    assert_eq!(memory.lock().held, 0);
}
