use std::num::NonZeroU32;
use std::time::Duration;

use super::Rate;

/// Takes all tokens at each time in milliseconds, and checks their number and when the next one is
/// available.
fn check(per_second: u32, rows: &[(u64, u32, u64)]) {
    let mut rate = Rate::new(NonZeroU32::new(per_second).expect("not 0"));
    for (now, expected, next) in rows {
        let mut taken = 0;
        let wait = loop {
            match rate.take(Duration::from_millis(*now)) {
                Ok(()) => taken += 1,
                Err(ready) => break ready,
            }
        };
        assert_eq!((taken, wait), (*expected, Duration::from_millis(*next)), "at {now}");
    }
}

#[test]
fn the_burst_is_one_second_of_tokens() {
    check(50, &[(0, 50, 20), (20, 1, 40), (30, 0, 40), (100, 4, 120), (5000, 50, 5020)]);
    check(1, &[(0, 1, 1000), (999, 0, 1000), (1000, 1, 2000)]);
}
