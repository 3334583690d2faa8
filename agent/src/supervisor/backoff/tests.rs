use super::*;

#[test]
fn pauses_double_and_begin_anew() {
    let mut backoff = Backoff::default();
    let millis = |backoff: &mut Backoff, lived| backoff.next(Duration::from_secs(lived), 1.0).as_millis();
    let pauses: Vec<_> = (0..9).map(|_| millis(&mut backoff, 1)).collect();
    assert_eq!(pauses, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
    assert_eq!(millis(&mut backoff, 30), 500, "after running for 30 s");
    assert_eq!(millis(&mut backoff, 29), 1000);
    assert_eq!(backoff.next(Duration::ZERO, 0.0), Duration::ZERO, "full jitter");
}

#[test]
fn randomness_is_in_range() {
    let found: Vec<f64> = (0..100).map(|_| random()).collect();
    assert!(found.iter().all(|number| (0.0..=1.0).contains(number)), "{found:?}");
    assert!(found.iter().any(|number| *number != found[0]), "{found:?}");
}
