use proptest::prelude::*;

use super::*;

const FIRST: Duration = Duration::from_millis(500);
const MAX: Duration = Duration::from_secs(30);
const MIN: Duration = Duration::from_millis(100);

fn next(backoff: &mut Backoff) -> u128 {
    backoff.next_delay().as_millis()
}

#[test]
fn delays_double_up_to_the_maximum() {
    let mut backoff = Backoff::new(FIRST, MAX);
    let delays: Vec<u128> = (0..9).map(|_| next(&mut backoff)).collect();
    assert_eq!(delays, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
    backoff.reset();
    assert_eq!(next(&mut backoff), 500);
    assert_eq!(exponential(FIRST, MAX, u32::MAX), MAX);
}

#[test]
fn only_a_long_run_resets_the_backoff() {
    for (worked, expected) in [(0, 4000), (1, 4000), (29, 4000), (30, 500), (3600, 500)] {
        let mut backoff = Backoff::new(FIRST, MAX);
        for _ in 0..3 {
            next(&mut backoff);
        }
        backoff.reset_after(Duration::from_secs(worked));
        assert_eq!(next(&mut backoff), expected, "worked for {worked} s");
    }
}

#[test]
fn the_maximum_can_apply_at_once() {
    let mut backoff = Backoff::new(FIRST, MAX);
    backoff.jump_to_max();
    assert_eq!((next(&mut backoff), next(&mut backoff)), (30_000, 30_000));
}

#[test]
fn jitter_is_full() {
    let mut backoff = Backoff::new(FIRST, MAX);
    assert_eq!(backoff.next_with_jitter(Duration::ZERO, 0.0), Duration::ZERO);
    assert_eq!(backoff.next_with_jitter(MIN, 0.0), MIN);
    assert_eq!(backoff.next_with_jitter(MIN, 1.0), FIRST * 4);
}

proptest! {
    #[test]
    fn every_delay_is_within_its_bounds(runs in prop::collection::vec((0u64..60, 0.0f64..=1.0), 0..40)) {
        let mut backoff = Backoff::new(FIRST, MAX);
        for (worked, random) in runs {
            backoff.reset_after(Duration::from_secs(worked));
            let longest = backoff.clone().next_delay();
            let delay = backoff.next_with_jitter(MIN, random);
            prop_assert!((MIN..=longest).contains(&delay));
        }
    }
}

#[test]
fn a_new_maximum_applies_from_the_next_delay_on() {
    let mut backoff = Backoff::new(FIRST, MAX);
    assert_eq!((next(&mut backoff), next(&mut backoff)), (500, 1000));
    backoff.set_max(Duration::from_secs(1));
    assert_eq!(next(&mut backoff), 1000);
    backoff.set_max(MAX);
    assert_eq!(next(&mut backoff), 4000, "the failures are counted");
}
