use std::net::IpAddr;

use super::*;

#[test]
fn each_source_has_its_own_permits() {
    let turns = SourcePermits::new(2);
    let source = |last: u8| Some(IpAddr::from([192, 0, 2, last]).into());
    let (first, again, other) = (turns.of(source(1)), turns.of(source(1)), turns.of(source(2)));
    let held: Vec<_> = (0..2).map(|_| first.try_acquire().unwrap()).collect();
    assert!(again.try_acquire().is_err() && other.try_acquire().is_ok());
    drop(held);
    drop((first, again));
    assert_eq!(turns.of(source(1)).available_permits(), 2);
}
