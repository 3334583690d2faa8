//! Values that are made of files, which are read again every 5 seconds.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};

/// Default interval between two reads.
const INTERVAL: Duration = Duration::from_secs(5);

/// Reads files and makes a `T` of them whenever their content has changed.
pub struct Watched<T> {
    poll: Box<dyn FnMut() -> Option<Result<T, String>> + Send>,
    interval: Duration,
    next: Option<Instant>,
}

impl<T> Watched<T> {
    /// `content` is what was read last.
    pub fn new<C: PartialEq + Send + 'static>(
        content: C,
        read: impl Fn() -> Result<C, String> + Send + 'static,
        parse: impl Fn(&C) -> Result<T, String> + Send + 'static,
    ) -> Self {
        let mut last = Ok(content);
        let poll = move || {
            let now = read();
            if now == last {
                return None;
            }
            last = now;
            Some(last.as_ref().map_err(Clone::clone).and_then(&parse))
        };
        Self { poll: Box::new(poll), interval: INTERVAL, next: None }
    }

    /// Reads the files at another interval.
    #[must_use]
    pub fn every(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Reads the files now. Returns `None` if nothing has changed since the last time, and an error
    /// if the files cannot be read or parsed; the previous value then stays in use.
    pub fn poll(&mut self) -> Option<Result<T, String>> {
        (self.poll)()
    }

    /// Reads the files every 5 seconds, or at the interval of [`Self::every`], and returns what changes; see [`Self::poll`]. Dropping the
    /// future loses nothing.
    pub async fn changed(&mut self) -> Result<T, String> {
        loop {
            let interval = self.interval;
            sleep_until(*self.next.get_or_insert_with(|| Instant::now() + interval)).await;
            self.next = None;
            if let Some(changed) = self.poll() {
                return changed;
            }
        }
    }
}

impl<T: Send + Sync + 'static> Watched<T> {
    /// Replaces `value` in the background whenever the files change. `on_change` is called for each
    /// change, with `None` if the new content is rejected; `what` names the value in the log.
    pub fn spawn(
        mut self,
        value: T,
        what: &'static str,
        on_change: impl Fn(Option<&T>) + Send + 'static,
    ) -> watch::Receiver<Arc<T>> {
        let (sender, receiver) = watch::channel(Arc::new(value));
        tokio::spawn(async move {
            loop {
                match self.changed().await {
                    Ok(value) => {
                        on_change(Some(&value));
                        sender.send_replace(Arc::new(value));
                        info!("{what} reloaded");
                    }
                    Err(error) => {
                        on_change(None);
                        warn!(error, "{what} rejected, keeping the previous one");
                    }
                }
            }
        });
        receiver
    }
}

#[cfg(test)]
mod tests;
