//! Waits for conditions.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Limit of each wait. It is far longer than any condition takes, so that a busy machine fails no
/// test.
pub const TIMEOUT: Duration = Duration::from_secs(120);
/// Pause between two attempts.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Calls `attempt` until it returns a value, and returns the value; `None` after [`TIMEOUT`].
pub async fn try_poll<T>(mut attempt: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    let begin = Instant::now();
    loop {
        let found = attempt().await;
        if found.is_some() || begin.elapsed() > TIMEOUT {
            return found;
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Waits until `is_so` returns true.
///
/// # Panics
/// After [`TIMEOUT`]; the message contains `what`.
pub async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let found = try_poll(async || is_so().await.then_some(())).await;
    assert!(found.is_some(), "timed out waiting for {what}");
}
