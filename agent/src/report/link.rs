//! The connection of this moment: asked for, or open with two short queues. What does not fit means that the server does not read.

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio_util::task::AbortOnDropHandle;

use super::connection::{self, Connection, Target};
use crate::args::Xds;
use crate::xds::{self, Request, Response};

/// Messages that wait, in each direction.
const QUEUE: usize = 8;

/// The connection of this moment. Dropped, it is closed.
pub(super) enum Link {
    /// There is none.
    None,
    /// Asked for.
    Connecting(AbortOnDropHandle<Result<Connection, String>>),
    /// There it is.
    Open {
        /// Absent: our half is at its end.
        requests: Option<mpsc::Sender<Request>>,
        /// The server does not read.
        is_full: bool,
        /// From the server.
        responses: mpsc::Receiver<Response>,
        /// Speaks.
        _task: AbortOnDropHandle<()>,
    },
}

/// What comes of it.
pub(super) enum Event {
    /// What was asked for.
    Connected(Connection),
    /// Why not.
    Failed(String),
    /// The server says this.
    Heard(Response),
}

impl Link {
    /// Asks for a connection; another one is dropped.
    pub(super) fn connect(&mut self, targets: Vec<Target>, random: fn() -> f64) {
        let task = tokio::spawn(async move { connection::connect(&targets, random).await });
        *self = Self::Connecting(AbortOnDropHandle::new(task));
    }

    /// Begins to speak, `first` first.
    pub(super) fn open(&mut self, connection: Connection, variant: Xds, first: Request) {
        let (requests, sent) = mpsc::channel(QUEUE);
        let (heard, responses) = mpsc::channel(QUEUE);
        requests.try_send(first).expect("an empty queue has room");
        let task = tokio::spawn(xds::speak(connection, variant, sent, heard));
        *self = Self::Open {
            requests: Some(requests),
            is_full: false,
            responses,
            _task: AbortOnDropHandle::new(task),
        };
    }

    /// Sends one more. A stream whose queue is full, or that nobody takes from, is as good as gone; its end is an event of its own.
    pub(super) fn send(&mut self, request: Request) {
        if let Self::Open { requests: Some(requests), is_full, .. } = self {
            *is_full |= matches!(requests.try_send(request), Err(TrySendError::Full(_)));
        }
    }

    /// Ends our half, behind what was sent.
    pub(super) fn half_close(&mut self) {
        if let Self::Open { requests, .. } = self {
            *requests = None;
        }
    }

    /// Returns with what comes next; may be dropped and called again.
    pub(super) async fn event(&mut self) -> Event {
        match self {
            Self::None => std::future::pending().await,
            Self::Connecting(task) => match task.await {
                Ok(Ok(connection)) => Event::Connected(connection),
                Ok(Err(why)) => Event::Failed(why),
                Err(error) => Event::Failed(error.to_string()),
            },
            Self::Open { is_full: true, .. } => {
                Event::Heard(Response::Ended { refused: false, why: "the server does not read".to_owned() })
            }
            Self::Open { responses, .. } => {
                let ended = || Response::Ended { refused: false, why: "the stream ended".to_owned() };
                Event::Heard(responses.recv().await.unwrap_or_else(ended))
            }
        }
    }
}
