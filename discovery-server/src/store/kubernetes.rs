//! Stores entries in Kubernetes: Istio's WorkloadGroup, WorkloadEntry and ServiceEntry, shared with
//! other replicas, kubectl and other controllers.
//!
//! One task runs the store; the decisions are made in [`entry_writer`], [`watched_config`] and
//! [`leases`].

mod api;
mod backoff;
pub mod decision;
pub mod entry_writer;
mod lease_task;
pub mod leases;
pub mod object;
pub mod object_cache;
pub mod request;
mod task;
pub mod watched_config;
mod watches;

use std::num::NonZeroU32;
use std::sync::Arc;

use futures_util::StreamExt as _;
use kube::Client;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{self as store, Store};
use crate::config_dir::Configured;
use crate::metrics::Metrics;
use api::Api;
use task::{Outputs, Task};

/// Capacity of the channel to the registry.
const CAPACITY: usize = 1024;

#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of this replica: of its Lease, and in the controller annotation of its entries.
    pub instance: String,
    /// Namespace of the Leases.
    pub namespace: String,
    /// Namespaces to watch; empty means all.
    pub namespaces: Vec<String>,
    /// Writes per second.
    pub per_second: NonZeroU32,
}

#[derive(Debug)]
pub struct Opened {
    pub store: Store,
    pub configured: watch::Receiver<Configured>,
    /// Ends after the registry, when this replica has released its Lease.
    pub task: JoinHandle<()>,
}

/// Connects to the API server of this cluster, or of the kubeconfig.
///
/// # Errors
/// Returns one line if no API server is configured, or its configuration cannot be used.
pub async fn client() -> Result<Client, String> {
    let mut config = kube::Config::infer().await.map_err(|error| format!("no API server: {error}"))?;
    config.connect_timeout = Some(api::DEADLINE);
    // Retries are paced and logged in this module.
    config.default_retry = false;
    Client::try_from(config).map_err(|error| format!("no API server: {error}"))
}

/// Starts the watches and waits until everything has been listed once, however long the API server
/// is unreachable.
pub async fn open(client: Client, settings: Settings, metrics: Arc<Metrics>) -> Opened {
    let Settings { instance, namespace, namespaces, per_second } = settings;
    let api = Api::new(client.clone(), &namespace);
    let (inputs_sender, inputs) = mpsc::channel(CAPACITY);
    let (configured_sender, configured) = watch::channel(Configured::default());
    let (degraded_sender, degraded) = watch::channel(None);
    let (isolated_sender, isolated) = watch::channel(false);
    let outputs = Outputs {
        inputs: inputs_sender,
        configured: configured_sender,
        degraded: degraded_sender,
        isolated: isolated_sender,
        metrics,
    };
    let (mut watches, waiting) = watches::watches(&client, &namespaces);
    let mut task = Task::new(api.clone(), instance.clone(), per_second, waiting, outputs);
    while task.is_listing() {
        if let Some(watched) = watches.next().await {
            task.process_initial(watched);
        }
    }
    task.publish_config();
    let (stored, writes) = (task.stored(), store::PendingWrites::default());
    let store = Store { stored, is_new: false, writes: writes.clone(), inputs, degraded, isolated };
    let (lists_sender, mut lease_lists) = mpsc::channel(1);
    let ending = CancellationToken::new();
    let lease = tokio::spawn(lease_task::run(api, instance, lists_sender, ending.clone()));
    // No entry is written before this replica's Lease exists: the other replicas would take the
    // entry for one of a dead replica.
    while let Some(list) = lease_lists.recv().await {
        let is_done = list.list.is_ok();
        task.leases_read(list).await;
        if is_done {
            break;
        }
    }
    let task = tokio::spawn(async move {
        task.run(watches, writes, lease_lists).await;
        ending.cancel();
        // Releasing the Lease has its own deadline.
        let _ = lease.await;
    });
    Opened { store, configured, task }
}
