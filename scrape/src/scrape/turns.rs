//! Limits how many scrapes read Envoy's metrics at the same time, because each of them loads Envoy's
//! main thread.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::time::{Instant, sleep};

use address::RequestFailure;

/// Number of scrapes that read Envoy's metrics at the same time.
const TURNS: usize = 2;
/// Time for which a client may delay Envoy's metrics in total while another scrape waits.
const PATIENCE: Duration = Duration::from_millis(250);

/// Turns in the order of their requests.
#[derive(Debug)]
pub(super) struct Turns {
    permits: Semaphore,
    /// Number of scrapes that wait for their turn.
    waiting: watch::Sender<usize>,
}

#[derive(Debug)]
pub(super) struct Turn<'a> {
    _permit: SemaphorePermit<'a>,
    waiting: watch::Receiver<usize>,
    patience: Duration,
}

/// Guard that counts a waiting scrape.
struct Waiting<'a>(&'a watch::Sender<usize>);

impl Default for Turns {
    fn default() -> Self {
        Self { permits: Semaphore::new(TURNS), waiting: watch::Sender::default() }
    }
}

impl Turns {
    /// Waits for a turn, which ends when the result is dropped.
    pub(super) async fn next(&self) -> Turn<'_> {
        let waiting = Waiting::new(&self.waiting);
        let permit = self.permits.acquire().await.expect("the semaphore is never closed");
        drop(waiting);
        Turn { _permit: permit, waiting: self.waiting.subscribe(), patience: PATIENCE }
    }
}

impl Turn<'_> {
    /// Waits until the client takes data. The error means that the client has delayed the other
    /// scrapes for too long and that this turn must end.
    pub(super) async fn wait_for_client<T>(
        &mut self,
        taken: impl Future<Output = T>,
    ) -> Result<T, RequestFailure> {
        let started = Instant::now();
        let (patience, waiting) = (self.patience, &mut self.waiting);
        let outstayed = async {
            sleep(patience).await;
            // The sender is not dropped before this turn.
            let _ = waiting.wait_for(|waiting| *waiting > 0).await;
        };
        let result = tokio::select! {
            biased;
            taken = taken => Ok(taken),
            () = outstayed => Err(RequestFailure::Timeout),
        };
        self.patience = patience.saturating_sub(started.elapsed());
        result
    }
}

impl<'a> Waiting<'a> {
    fn new(count: &'a watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
