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

#[test]
fn permits_in_use_are_kept_and_others_forgotten() {
    let permits = SourcePermits::new(1);
    let source = |number: u32| Some(IpAddr::from(number.to_be_bytes()).into());
    let held = permits.of(source(0));
    for number in 1..20_000 {
        drop(permits.of(source(number)));
    }
    assert!(Arc::ptr_eq(&held, &permits.of(source(0))), "a source cannot get more by changing addresses");
    let states = format!("{permits:?}").matches("(Weak)").count();
    assert!(states <= 2048, "{states} states");
}
