use super::*;

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Takes all tokens at each time in milliseconds, and checks their number and when the next one is
/// available.
fn check(mut limiter: RateLimiter, rows: &[(u64, u32, u64)]) {
    for (now, expected, next) in rows {
        let mut taken = 0;
        let ready = loop {
            match limiter.take(millis(*now)) {
                Ok(()) => taken += 1,
                Err(ready) => break ready,
            }
        };
        assert_eq!((taken, ready), (*expected, millis(*next)), "at {now}");
    }
}

#[test]
fn tokens_are_taken_and_added() {
    let rows = [(0, 50, 20), (20, 1, 40), (30, 0, 40), (100, 4, 120), (5000, 50, 5020)];
    check(RateLimiter::new(millis(20), 50), &rows);
    check(RateLimiter::new(millis(1000), 1), &[(0, 1, 1000), (999, 0, 1000), (1000, 1, 2000)]);
    check(RateLimiter::new(millis(1000), 0), &[(0, 1, 1000), (1000, 1, 2000)]);
    check(
        RateLimiter::new(millis(500), 3),
        &[(0, 3, 500), (500, 1, 1000), (400, 0, 1000), (60_000, 3, 60_500)],
    );
    check(RateLimiter::with_one_token(millis(500), 3), &[(0, 1, 500), (500, 1, 1000), (9000, 3, 9500)]);
}

#[test]
fn a_bucket_is_full_after_its_burst() {
    let mut limiter = RateLimiter::new(millis(500), 3);
    assert_eq!(limiter.full_at(), millis(0));
    assert_eq!((limiter.take(millis(100)), limiter.full_at()), (Ok(()), millis(600)));
    assert_eq!((limiter.take(millis(100)), limiter.full_at()), (Ok(()), millis(1100)));
}

#[test]
fn several_tokens_are_taken_at_once_or_not_at_all() {
    let mut limiter = RateLimiter::new(millis(10), 5);
    assert_eq!(limiter.take_many(4, millis(0)), Ok(()));
    assert_eq!(limiter.take_many(2, millis(0)), Err(millis(10)));
    assert_eq!(limiter.take_many(1, millis(0)), Ok(()));
    assert_eq!(limiter.take_many(5, millis(50)), Ok(()));
    assert!(
        limiter.take_many(6, millis(10_000)).is_err() && limiter.take_many(u32::MAX, millis(10_000)).is_err()
    );
    assert_eq!(limiter.take_many(5, millis(10_000)), Ok(()));
}
