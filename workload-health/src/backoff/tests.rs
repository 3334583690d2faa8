use proptest::prelude::*;

use super::*;

fn longest(backoff: &mut Backoff) -> u128 {
    backoff.next(1.0).as_millis()
}

#[test]
fn doubles_to_half_a_minute_and_stays() {
    let mut backoff = Backoff::default();
    let pauses: Vec<u128> = (0..9).map(|_| longest(&mut backoff)).collect();
    assert_eq!(pauses, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
}

#[test]
fn only_a_long_life_begins_anew() {
    for (lived, next) in [(0, 4000), (1, 4000), (29, 4000), (30, 500), (3600, 500)] {
        let mut backoff = Backoff::default();
        for _ in 0..3 {
            longest(&mut backoff);
        }
        backoff.lived(Duration::from_secs(lived));
        assert_eq!(longest(&mut backoff), next, "lived {lived} s");
    }
}

#[test]
fn a_refusal_is_the_last_step_at_once() {
    let mut backoff = Backoff::default();
    backoff.refused();
    assert_eq!(longest(&mut backoff), 30_000);
}

proptest! {
    #[test]
    fn every_pause_is_within_its_bounds(lives in prop::collection::vec((0u64..60, 0.0f64..=1.0), 0..40)) {
        let mut backoff = Backoff::default();
        for (lived, random) in lives {
            backoff.lived(Duration::from_secs(lived));
            let mut longest = backoff.clone();
            let pause = backoff.next(random);
            prop_assert!(pause >= LEAST && pause <= longest.next(1.0));
        }
    }
}
