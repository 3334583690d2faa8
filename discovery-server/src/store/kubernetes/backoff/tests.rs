use tokio::time::advance;

use super::*;

#[tokio::test(start_paused = true)]
async fn delays_grow_until_a_watch_has_worked() {
    let mut backoff = ShortBackoff::default();
    let mut delays = Vec::new();
    for _ in 0..9 {
        delays.extend(backoff.next());
        // As for each object of a list that succeeds.
        backoff.reset();
        advance(Duration::from_secs(1)).await;
    }
    let expected = [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000].map(Duration::from_millis);
    assert_eq!(delays, expected);
    advance(WORKS).await;
    assert_eq!(backoff.next(), Some(FIRST));
}
