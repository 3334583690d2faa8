use proptest::prelude::*;

use super::*;

fn longest(backoff: &mut Backoff) -> u128 {
    backoff.next(1.0).as_millis()
}

#[test]
fn doubles_up_to_30_seconds() {
    let mut backoff = Backoff::default();
    let pauses: Vec<u128> = (0..9).map(|_| longest(&mut backoff)).collect();
    assert_eq!(pauses, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
}

#[test]
fn only_a_long_stream_resets() {
    for (lasted, next) in [(0, 4000), (1, 4000), (29, 4000), (30, 500), (3600, 500)] {
        let mut backoff = Backoff::default();
        for _ in 0..3 {
            longest(&mut backoff);
        }
        backoff.stream_ended(Duration::from_secs(lasted));
        assert_eq!(longest(&mut backoff), next, "lasted {lasted} s");
    }
}

#[test]
fn a_rejection_gives_the_longest_pause() {
    let mut backoff = Backoff::default();
    backoff.rejected();
    assert_eq!(longest(&mut backoff), 30_000);
}

proptest! {
    #[test]
    fn every_pause_is_within_its_bounds(lives in prop::collection::vec((0u64..60, 0.0f64..=1.0), 0..40)) {
        let mut backoff = Backoff::default();
        for (lasted, random) in lives {
            backoff.stream_ended(Duration::from_secs(lasted));
            let mut longest = backoff.clone();
            let pause = backoff.next(random);
            prop_assert!(pause >= MIN && pause <= longest.next(1.0));
        }
    }
}
