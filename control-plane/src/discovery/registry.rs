//! STUB until merged
#![allow(missing_docs, reason = "stub")]
use crate::discovery::entries::*;
use crate::discovery::objects::Group;
use crate::discovery::snapshot::Snapshot;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
#[derive(Debug)]
pub enum ToStream {
    Hello { session: u64, heartbeat: Duration, probe: Option<Arc<Group>> },
    Ack { epoch: String, generation: u64 },
    Close { code: Code, text: String },
}
#[derive(Clone)]
pub struct Handle {
    snapshots: watch::Receiver<Arc<Snapshot>>,
    senders: Arc<std::sync::Mutex<Vec<mpsc::Sender<ToStream>>>>,
}
impl Handle {
    pub fn new(snapshots: watch::Receiver<Arc<Snapshot>>) -> Self {
        Self { snapshots, senders: Arc::default() }
    }
    pub async fn opened(
        &self,
        _: StreamId,
        _: SocketAddr,
        _: Option<Identity>,
        _: Box<Node>,
        sender: mpsc::Sender<ToStream>,
    ) {
        self.senders.lock().unwrap().push(sender);
    }
    pub async fn send(&self, _: Input) {}
    pub fn snapshots(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.snapshots.clone()
    }
}
