//! Waits for conditions. A test waits for the state that it needs, never for a pause, a log line or
//! a port that stands for it.

use std::sync::LazyLock;
use std::time::Duration;

use tokio::time::Instant;

/// Limit of every wait on a machine of the usual speed, far above the time that any step takes there.
const USUAL_TIMEOUT: Duration = Duration::from_secs(240);
/// How many times slower than usual this machine is, for example `1.7`. The test runner measures it
/// at the start of a run (`tests/runner/speed.py`).
const SLOWNESS: &str = "APP_HEALTH_TEST_SLOWNESS";
/// Pause between two evaluations of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Returns the limit of every wait for work to be done. It ends a test that hangs; no test asserts that
/// something happens faster.
pub fn timeout() -> Duration {
    static TIMEOUT: LazyLock<Duration> =
        LazyLock::new(|| scaled(std::env::var_os(SLOWNESS).and_then(|value| value.into_string().ok())));
    *TIMEOUT
}

/// Multiplies the usual limit by a factor. A value that is no number of at least 1 changes nothing.
fn scaled(slowness: Option<String>) -> Duration {
    let factor = slowness.and_then(|value| value.parse::<f64>().ok()).filter(|factor| *factor >= 1.0);
    USUAL_TIMEOUT.mul_f64(factor.unwrap_or(1.0).min(100.0))
}

/// Waits until `condition` returns true.
///
/// # Panics
/// If it does not within [`timeout`]; `what` names the condition.
pub async fn until(what: &str, condition: impl AsyncFnMut() -> bool) {
    until_or(|| what.to_owned(), condition).await;
}

/// Like [`until`], for a description that contains the state at the end, such as a log.
///
/// # Panics
/// If the condition is not met within [`timeout`].
pub async fn until_or(what: impl Fn() -> String, mut condition: impl AsyncFnMut() -> bool) {
    until_some(what, async || condition().await.then_some(())).await;
}

/// Waits until `condition` returns a value, and returns it.
///
/// # Panics
/// If it does not within [`timeout`].
pub async fn until_some<T>(what: impl Fn() -> String, condition: impl AsyncFnMut() -> Option<T>) -> T {
    try_poll(condition).await.unwrap_or_else(|| panic!("timed out after {:?}: {}", timeout(), what()))
}

/// Like [`until_some`], and returns `None` after [`timeout`].
pub async fn try_poll<T>(mut condition: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    let polled = async {
        loop {
            if let Some(value) = condition().await {
                return value;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    tokio::time::timeout(timeout(), polled).await.ok()
}

/// Like [`until_or`], for a thread without tokio.
///
/// # Panics
/// If the condition is not met within [`timeout`].
pub fn until_blocking(what: impl Fn() -> String, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < timeout(), "timed out after {:?}: {}", timeout(), what());
        std::thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests;
