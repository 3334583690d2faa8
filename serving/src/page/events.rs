//! Streams of server-sent events: a bounded number, each with one event in flight.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::set_common;
use crate::http_server::{Body, Chunks, Response, ResponseTimeout};

/// Time without an event after which a comment shows the client that the connection works.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Time for the client to read an event. A client that is slower is disconnected.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// After this time the stream ends, and the page opens another one.
const LONGEST: Duration = Duration::from_secs(3600);

/// Limit of the open streams of one server.
#[derive(Debug, Clone)]
pub struct EventStreams(Arc<Semaphore>);

/// One of the open streams, until it is dropped.
#[derive(Debug)]
pub struct StreamPermit(OwnedSemaphorePermit);

/// The newest event for all streams, encoded by [`event`]. An empty one is not sent.
pub type Events = watch::Receiver<Bytes>;

/// Encodes an event; `data` has no line breaks.
pub fn event(name: &str, data: impl Display) -> Bytes {
    format!("event: {name}\ndata: {data}\n\n").into()
}

impl EventStreams {
    /// Allows `most` open streams.
    pub fn new(most: usize) -> Self {
        Self(Arc::new(Semaphore::new(most)))
    }

    /// Takes the place of one stream; `None` if all are taken.
    pub fn take(&self) -> Option<StreamPermit> {
        self.0.clone().try_acquire_owned().ok().map(StreamPermit)
    }
}

impl StreamPermit {
    /// Sends the newest event whenever it changes, until the client disconnects or `closing` is
    /// cancelled.
    pub fn stream(self, events: Events, closing: CancellationToken) -> Response {
        let (chunks, body) = Body::chunks(1);
        tokio::spawn(async move {
            let _permit = self.0;
            tokio::select! {
                () = send(events, &chunks) => {}
                () = chunks.closed() => {}
                () = closing.cancelled() => {}
                () = tokio::time::sleep(LONGEST) => {}
            }
        });
        let mut response = Response::new(body);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        set_common(response.headers_mut());
        response.extensions_mut().insert(ResponseTimeout(LONGEST + WRITE_TIMEOUT));
        response
    }
}

async fn send(mut events: Events, chunks: &Chunks) {
    let mut next = Bytes::from_static(b"retry: 2000\n\n");
    events.mark_changed();
    loop {
        if !matches!(timeout(WRITE_TIMEOUT, chunks.send(next)).await, Ok(Ok(()))) {
            return;
        }
        let keep_alive = Instant::now() + KEEP_ALIVE;
        next = loop {
            tokio::select! {
                changed = events.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let newest = events.borrow_and_update().clone();
                    if !newest.is_empty() {
                        break newest;
                    }
                }
                () = sleep_until(keep_alive) => break Bytes::from_static(b": keep-alive\n\n"),
            }
        };
    }
}
