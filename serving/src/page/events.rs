//! Streams of server-sent events: a bounded number, each with one event in flight.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;
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

/// The events of one stream.
pub trait EventSource: Send + 'static {
    /// Waits for the next event, encoded by [`event`]; `None` ends the stream. It is cancel safe.
    fn next(&mut self) -> impl Future<Output = Option<Bytes>> + Send;
}

/// The newest event for all streams. An empty one is not sent.
#[derive(Debug)]
pub struct Events(watch::Receiver<Bytes>);

impl From<watch::Receiver<Bytes>> for Events {
    fn from(mut events: watch::Receiver<Bytes>) -> Self {
        events.mark_changed();
        Self(events)
    }
}

impl EventSource for Events {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            self.0.changed().await.ok()?;
            let newest = self.0.borrow_and_update().clone();
            if !newest.is_empty() {
                return Some(newest);
            }
        }
    }
}

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
    /// Sends events until there are no more, the client disconnects, or `closing` is cancelled.
    pub fn stream(self, events: impl EventSource, closing: CancellationToken) -> Response {
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

async fn send(mut events: impl EventSource, chunks: &Chunks) {
    let mut next = Bytes::from_static(b"retry: 2000\n\n");
    while matches!(timeout(WRITE_TIMEOUT, chunks.send(next)).await, Ok(Ok(()))) {
        next = match timeout(KEEP_ALIVE, events.next()).await {
            Ok(Some(event)) => event,
            Ok(None) => return,
            Err(_) => Bytes::from_static(b": keep-alive\n\n"),
        };
    }
}
