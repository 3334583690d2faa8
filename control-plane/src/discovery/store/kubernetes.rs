//! Entries in Kubernetes: WorkloadGroup, WorkloadEntry and ServiceEntry of Istio, shared with other replicas, kubectl and other
//! controllers.
//!
//! One task holds all together; what it decides is decided in [`writes`], [`configuration`] and [`leases`].

mod api;
pub mod configuration;
pub mod decision;
pub mod leases;
pub mod object;
pub mod objects;
pub mod rate;
mod replica;
mod task;
mod watch;
pub mod writes;

use std::num::NonZeroU32;

use futures_util::StreamExt as _;
use kube::Client;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::discovery::entries::{Input, Record};
use crate::discovery::objects::Key;
use api::Api;
use decision::Wish;
use task::Task;

/// Looks and wishes on their way.
const CHANNEL: usize = 1024;

/// How entries are kept.
#[derive(Clone, Debug)]
pub struct Settings {
    /// This replica: the name of its Lease, and of its entries' controller.
    pub instance: String,
    /// Where the Leases are.
    pub namespace: String,
    /// What is watched; none: all.
    pub namespaces: Vec<String>,
    /// Writes a second.
    pub per_second: NonZeroU32,
}

/// What the brain wants stored.
#[derive(Debug)]
pub struct Write {
    /// The entry.
    pub key: Key,
    /// The brain's number.
    pub write: u64,
    /// What it should become.
    pub wish: Wish,
}

/// What comes out.
#[derive(Debug)]
pub enum Output {
    /// For the brain.
    Input(Input),
    /// What is wrong with the configuration, anew: lines that name kind, namespace and name.
    ConfigErrors(Vec<String>),
    /// The API server did not take, or not hear, what we wrote: for the count of errors.
    Error,
}

/// Everything as it was when all watches had listed once.
pub struct Opened {
    /// Records of entries that somebody wrote about.
    pub stored: Vec<(Key, Record)>,
    /// The first of these make the brain complete.
    pub outputs: mpsc::Receiver<Output>,
    /// Wishes; dropping it ends the task, which then gives the Lease back.
    pub writes: mpsc::UnboundedSender<Write>,
    /// The task.
    pub task: tokio::task::JoinHandle<()>,
}

/// Watches, and waits until everything was listed once; an API server that is away is waited for.
pub async fn open(client: Client, settings: Settings) -> Opened {
    let Settings { instance, namespace, namespaces, per_second } = settings;
    let api = Api::new(client.clone(), namespace);
    let (looks_in, looks) = mpsc::channel(1);
    let ending = CancellationToken::new();
    let lease = tokio::spawn(replica::keep(api.clone(), instance.clone(), looks_in, ending.clone()));
    let (outputs_in, outputs) = mpsc::channel(CHANNEL);
    let waiting = watch::Kind::ALL.len() * namespaces.len().max(1);
    let mut watches = watch::watches(&client, &namespaces);
    let mut task = Task::new(api, instance, per_second, waiting, outputs_in);
    while task.is_waiting() {
        if let Some(watched) = watches.next().await {
            task.first(watched);
        }
    }
    let stored = task.stored();
    let (writes, wishes) = mpsc::unbounded_channel();
    let task = tokio::spawn(async move {
        task.run(watches, wishes, looks).await;
        ending.cancel();
        // It has a deadline of its own.
        let _ = lease.await;
    });
    Opened { stored, outputs, writes, task }
}
