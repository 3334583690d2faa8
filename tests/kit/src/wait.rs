//! Waits for conditions. A test waits for the state that it needs, never for a pause, a log line or
//! a port that stands for it.

use std::time::Duration;

/// Limit of every wait, far above the time that any step takes on a busy machine. It ends a test
/// that hangs; no test asserts that something happens faster.
pub const TIMEOUT: Duration = Duration::from_secs(120);
/// Pause between two evaluations of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Waits until `condition` returns true.
///
/// # Panics
/// If it does not within [`TIMEOUT`]; `what` names the condition.
pub async fn until(what: &str, condition: impl AsyncFnMut() -> bool) {
    until_or(|| what.to_owned(), condition).await;
}

/// Like [`until`], for a description that contains the state at the end, such as a log.
///
/// # Panics
/// If the condition is not met within [`TIMEOUT`].
pub async fn until_or(what: impl Fn() -> String, mut condition: impl AsyncFnMut() -> bool) {
    until_some(what, async || condition().await.then_some(())).await;
}

/// Waits until `condition` returns a value, and returns it.
///
/// # Panics
/// If it does not within [`TIMEOUT`].
pub async fn until_some<T>(what: impl Fn() -> String, condition: impl AsyncFnMut() -> Option<T>) -> T {
    try_poll(condition).await.unwrap_or_else(|| panic!("timed out after {TIMEOUT:?}: {}", what()))
}

/// Like [`until_some`], and returns `None` after [`TIMEOUT`].
pub async fn try_poll<T>(mut condition: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    let polled = async {
        loop {
            if let Some(value) = condition().await {
                return value;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    tokio::time::timeout(TIMEOUT, polled).await.ok()
}
