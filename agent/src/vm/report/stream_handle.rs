//! The current connection to the discovery server: none, being opened, or open with one bounded
//! queue in each direction.

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use super::HealthLink;
use super::connection::{self, Connection, ServerTarget};
use super::xds::{self, Request, Response};
use crate::args::Xds;

/// Capacity of each queue, in messages.
const QUEUE_CAPACITY: usize = 8;

/// The current connection. Dropping the value closes it.
pub(super) enum StreamHandle {
    None,
    Connecting(AbortOnDropHandle<Result<Connection, String>>),
    /// Waits for the upstream stream of the xDS proxy.
    Attaching {
        opened: oneshot::Receiver<(String, String)>,
        requests: mpsc::Sender<Request>,
        responses: mpsc::Receiver<Response>,
    },
    Open {
        /// `None` once the client's half of the stream is closed.
        requests: Option<mpsc::Sender<Request>>,
        /// True if the request queue overflowed, which means that the server does not read.
        is_full: bool,
        responses: mpsc::Receiver<Response>,
        /// Task that serves the stream; `None` if the xDS proxy does.
        _task: Option<AbortOnDropHandle<()>>,
    },
}

pub(super) enum Event {
    Connected(Connection),
    /// The xDS proxy has a stream to a server with this address and name.
    Attached(String, String),
    /// The connection attempt failed, with the reason.
    Failed(String),
    Received(Response),
}

impl StreamHandle {
    /// Starts to open a connection; the current one is dropped.
    pub(super) fn connect(&mut self, targets: Vec<ServerTarget>, random: fastrand::Rng) {
        let task = tokio::spawn(async move { connection::connect(&targets, random).await });
        *self = Self::Connecting(AbortOnDropHandle::new(task));
    }

    /// Opens the stream and sends `first` as its first request.
    pub(super) fn open(&mut self, connection: Connection, variant: Xds, first: Request) {
        let (requests, sent) = mpsc::channel(QUEUE_CAPACITY);
        let (received, responses) = mpsc::channel(QUEUE_CAPACITY);
        requests.try_send(first).expect("an empty queue has room");
        let task = tokio::spawn(xds::run_stream(connection, variant, sent, received));
        *self = Self::Open {
            requests: Some(requests),
            is_full: false,
            responses,
            _task: Some(AbortOnDropHandle::new(task)),
        };
    }

    /// Waits for a stream of the xDS proxy. The proxy takes one link at a time, and drops the one
    /// before it.
    pub(super) fn attach(&mut self, links: &mpsc::Sender<HealthLink>) {
        let (requests, sent) = mpsc::channel(QUEUE_CAPACITY);
        let (received, responses) = mpsc::channel(QUEUE_CAPACITY);
        let (open, opened) = oneshot::channel();
        let link = HealthLink { requests: Some(sent), responses: received, opened: Some(open) };
        // A link that is not taken is reported by `opened`.
        let _ = links.try_send(link);
        *self = Self::Attaching { opened, requests, responses };
    }

    fn use_attached(&mut self) {
        if let Self::Attaching { requests, responses, .. } = std::mem::replace(self, Self::None) {
            *self = Self::Open { requests: Some(requests), is_full: false, responses, _task: None };
        }
    }

    /// Sends a request. If the queue is full, the server does not read, and the next
    /// [`StreamHandle::event`] reports the end of the stream. If the queue is closed, the stream has ended,
    /// which is reported as an event too.
    pub(super) fn send(&mut self, request: Request) {
        if let Self::Open { requests: Some(requests), is_full, .. } = self {
            *is_full |= matches!(requests.try_send(request), Err(TrySendError::Full(_)));
        }
    }

    /// Closes the client's half of the stream after all queued requests are sent. The stream of the xDS
    /// proxy is Envoy's, and stays open.
    pub(super) fn half_close(&mut self) {
        if let Self::Open { requests, .. } = self {
            *requests = None;
        }
    }

    /// Returns the next event. This method is cancel safe.
    pub(super) async fn event(&mut self) -> Event {
        match self {
            Self::None => std::future::pending().await,
            Self::Connecting(task) => match task.await {
                Ok(Ok(connection)) => Event::Connected(connection),
                Ok(Err(why)) => Event::Failed(why),
                Err(error) => Event::Failed(error.to_string()),
            },
            Self::Attaching { opened, .. } => match opened.await {
                Ok((peer, server)) => {
                    self.use_attached();
                    Event::Attached(peer, server)
                }
                Err(_) => Event::Failed("the xDS proxy is busy".to_owned()),
            },
            Self::Open { is_full: true, .. } => Event::Received(Response::Ended {
                rejected: false,
                why: "the server does not read".to_owned(),
            }),
            Self::Open { responses, .. } => {
                let ended = || Response::Ended { rejected: false, why: "the stream ended".to_owned() };
                Event::Received(responses.recv().await.unwrap_or_else(ended))
            }
        }
    }
}
