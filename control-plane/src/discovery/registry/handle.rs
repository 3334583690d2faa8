//! How the others reach the registry, and what it says to streams.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};

use crate::discovery::config_dir::Configured;
use discovery::entries::{Code, Identity, Input, Node, StreamId};
use discovery::objects::Group;
use discovery::snapshot::Snapshot;
use discovery::view::Overview;

/// What the registry says to a stream.
#[derive(Debug)]
pub enum ToStream {
    /// To our agent, at its begin and at each change.
    Hello {
        /// 0: its entry is pending.
        session: u64,
        /// How often it is to report.
        heartbeat: Duration,
        /// Whose probe.
        probe: Option<Arc<Group>>,
    },
    /// A report is stored.
    Ack {
        /// Of the report.
        epoch: String,
        /// Of the report.
        generation: u64,
    },
    /// The stream is to end.
    Close {
        /// With this status.
        code: Code,
        /// And this message.
        text: String,
    },
}

/// How the others reach the registry.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(super) inbox: mpsc::Sender<Message>,
    pub(super) snapshots: watch::Receiver<Arc<Snapshot>>,
    pub(super) degraded: watch::Receiver<Option<String>>,
    pub(super) configured: watch::Receiver<Configured>,
}

/// What comes to the registry, in the order of its senders.
#[derive(Debug)]
pub(super) enum Message {
    Opened(Input, StreamId, mpsc::Sender<ToStream>),
    Input(Input),
    View(oneshot::Sender<Overview>),
}

impl Handle {
    /// A stream's first request; `sender` gets what is for it.
    pub async fn opened(
        &self,
        stream: StreamId,
        peer: SocketAddr,
        identity: Option<Identity>,
        node: Box<Node>,
        sender: mpsc::Sender<ToStream>,
    ) {
        self.tell(Message::Opened(Input::Opened { stream, peer, identity, node }, stream, sender)).await;
    }

    /// Everything else that a stream has to say, in its order.
    pub async fn send(&self, input: Input) {
        self.tell(Message::Input(input)).await;
    }

    /// What Envoys are served; the first is complete.
    pub fn snapshots(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.snapshots.clone()
    }

    /// What the operator sees; empty when the registry has ended.
    pub async fn view(&self) -> Overview {
        let (sender, view) = oneshot::channel();
        self.tell(Message::View(sender)).await;
        view.await.unwrap_or_default()
    }

    /// What does not work although it is served: a line each.
    pub fn degradations(&self) -> Vec<String> {
        let store = self.degraded.borrow().clone();
        let errors = self.configured.borrow().errors.len();
        let configuration = (errors > 0).then(|| format!("configuration: {errors} errors"));
        store.into_iter().chain(configuration).collect()
    }

    async fn tell(&self, message: Message) {
        // After its end nobody needs to know.
        let _ = self.inbox.send(message).await;
    }
}
