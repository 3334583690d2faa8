//! The channel to the registry.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};

use super::ConditionChange;
use crate::config_dir::Configured;
use discovery::entries::{Identity, Input, Node, StreamCommand, StreamId};
use discovery::objects::Key;
use discovery::snapshot::Snapshot;
use discovery::view::RegistryView;
use pacing::source::Source;

/// A handle to the registry task.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(super) inbox: mpsc::Sender<Message>,
    pub(super) snapshots: watch::Receiver<Arc<Snapshot>>,
    pub(super) degraded: watch::Receiver<Option<String>>,
    pub(super) isolated: watch::Receiver<bool>,
    pub(super) configured: watch::Receiver<Configured>,
}

/// A message to the registry. Messages of one sender keep their order.
#[derive(Debug)]
pub(super) enum Message {
    Opened(Input, StreamId, mpsc::Sender<StreamCommand>, Source),
    Input(Input),
    View(oneshot::Sender<RegistryView>),
    History(Key, oneshot::Sender<Vec<ConditionChange>>),
}

impl Handle {
    /// Registers a stream with its first request. The registry sends messages for the stream to
    /// `sender`.
    pub async fn opened(
        &self,
        stream: StreamId,
        peer: SocketAddr,
        identity: Option<Identity>,
        node: Box<Node>,
        sender: mpsc::Sender<StreamCommand>,
    ) {
        let source = peer.ip().into();
        let input = Input::Opened { stream, peer, identity, node };
        self.send_message(Message::Opened(input, stream, sender, source)).await;
    }

    /// Sends any subsequent input of a stream.
    pub async fn send(&self, input: Input) {
        self.send_message(Message::Input(input)).await;
    }

    /// Returns the published snapshots. The first one is complete.
    pub fn snapshots(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.snapshots.clone()
    }

    /// Returns the data of `/debug/workloads`; empty if the registry has ended.
    pub async fn view(&self) -> RegistryView {
        let (sender, view) = oneshot::channel();
        self.send_message(Message::View(sender)).await;
        view.await.unwrap_or_default()
    }

    /// Returns the last changes of a machine's condition, oldest first.
    pub async fn history(&self, key: Key) -> Vec<ConditionChange> {
        let (sender, history) = oneshot::channel();
        self.send_message(Message::History(key, sender)).await;
        history.await.unwrap_or_default()
    }

    /// Returns true if agents must connect to another replica.
    pub fn is_isolated(&self) -> bool {
        *self.isolated.borrow()
    }

    /// Returns the conditions under which the server is ready but degraded, one per line.
    pub fn degradations(&self) -> Vec<String> {
        let store = self.degraded.borrow().clone();
        let errors = self.configured.borrow().errors.len();
        let configuration = (errors > 0).then(|| format!("configuration: {errors} errors"));
        let snapshot = self.snapshots.borrow();
        let preserved =
            snapshot.preserved().values().filter(|preserved| preserved.is_self_preserved()).count();
        let services = snapshot.self_preserving_services().len();
        let preserved = (preserved > 0).then(|| {
            format!(
                "{preserved} silent machines of {services} services are preserved as endpoints, self-preservation (--max-silent-percent); if they are gone, run `app-health workloads release`"
            )
        });
        store.into_iter().chain(configuration).chain(preserved).collect()
    }

    async fn send_message(&self, message: Message) {
        // The send fails only after the registry has ended, when no input matters.
        let _ = self.inbox.send(message).await;
    }
}
