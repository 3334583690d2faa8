//! Receives the chunks of all sources in the order in which they arrive. So a source that does not
//! respond delays no other one, and no source needs a large buffer.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, timeout};

pub(super) struct Arrivals<T> {
    sources: Vec<Arrival<T>>,
    /// Source of the last chunk. It comes first, so that its families mostly stay together.
    current: Option<usize>,
}

struct Arrival<T> {
    /// `None` after the end of the source.
    chunks: Option<Receiver<T>>,
    /// Time for which the others still wait for this source while it is the current one.
    patience: Duration,
}

impl<T> Arrivals<T> {
    /// `patience` is the time for which each source may delay the others in total, after its first
    /// chunk.
    pub(super) fn new(sources: impl IntoIterator<Item = Receiver<T>>, patience: Duration) -> Self {
        let arrival = |chunks| Arrival { chunks: Some(chunks), patience };
        Self { sources: sources.into_iter().map(arrival).collect(), current: None }
    }

    /// Returns the position of a source and its next chunk, or `None` for its end. After the ends of
    /// all sources, the result is `None`.
    pub(super) async fn next(&mut self) -> Option<(usize, Option<T>)> {
        let (position, chunk) = match self.next_of_current().await {
            Some(arrived) => arrived,
            None => self.next_of_any().await?,
        };
        self.current = Some(position);
        if chunk.is_none() {
            self.sources[position].chunks = None;
        }
        Some((position, chunk))
    }

    async fn next_of_current(&mut self) -> Option<(usize, Option<T>)> {
        let position = self.current?;
        let Arrival { chunks, patience } = &mut self.sources[position];
        let started = Instant::now();
        // If the time is over, a chunk that has arrived is still received.
        let arrived = timeout(*patience, chunks.as_mut()?.recv()).await.ok();
        *patience = patience.saturating_sub(started.elapsed());
        Some((position, arrived?))
    }

    async fn next_of_any(&mut self) -> Option<(usize, Option<T>)> {
        poll_fn(|context| {
            let mut has_ended = true;
            for (position, source) in self.sources.iter_mut().enumerate() {
                let Some(chunks) = &mut source.chunks else { continue };
                has_ended = false;
                if let Poll::Ready(chunk) = chunks.poll_recv(context) {
                    return Poll::Ready(Some((position, chunk)));
                }
            }
            if has_ended { Poll::Ready(None) } else { Poll::Pending }
        })
        .await
    }
}

#[cfg(test)]
mod tests;
