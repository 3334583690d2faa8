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
mod watches;
pub mod writes;

use std::num::NonZeroU32;
use std::sync::Arc;

use futures_util::StreamExt as _;
use kube::Client;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{self as store, Store};
use crate::discovery::config_dir::Configured;
use crate::discovery::metrics::Metrics;
use api::Api;
use task::{Outputs, Task};

/// What is on its way to the registry.
const CAPACITY: usize = 1024;

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

/// A store that is open.
#[derive(Debug)]
pub struct Opened {
    /// For the registry.
    pub store: Store,
    /// What is configured.
    pub configured: watch::Receiver<Configured>,
    /// Ends after the registry, when this replica's Lease is given back.
    pub task: JoinHandle<()>,
}

/// The API server of the cluster that this runs in, or of the kubeconfig.
///
/// # Errors
/// A line: there is none, or its configuration cannot be used.
pub async fn client() -> Result<Client, String> {
    let mut config = kube::Config::infer().await.map_err(|error| format!("no API server: {error}"))?;
    config.connect_timeout = Some(api::DEADLINE);
    // Tries again are paced and told of here.
    config.default_retry = false;
    Client::try_from(config).map_err(|error| format!("no API server: {error}"))
}

/// Watches, and waits until everything was listed once; an API server that is away is waited for.
pub async fn open(client: Client, settings: Settings, metrics: Arc<Metrics>) -> Opened {
    let Settings { instance, namespace, namespaces, per_second } = settings;
    let api = Api::new(client.clone(), namespace);
    let (inputs_sender, inputs) = mpsc::channel(CAPACITY);
    let (configured_sender, configured) = watch::channel(Configured::default());
    let (degraded_sender, degraded) = watch::channel(None);
    let outputs =
        Outputs { inputs: inputs_sender, configured: configured_sender, degraded: degraded_sender, metrics };
    let (mut watches, waiting) = watches::watches(&client, &namespaces);
    let mut task = Task::new(api.clone(), instance.clone(), per_second, waiting, outputs);
    while task.is_waiting() {
        if let Some(watched) = watches.next().await {
            task.first(watched);
        }
    }
    task.configure();
    let (stored, writes) = (task.stored(), store::Writes::default());
    let store = Store { stored, is_new: false, writes: writes.clone(), inputs, degraded };
    let (looks_sender, mut looks) = mpsc::channel(1);
    let ending = CancellationToken::new();
    let lease = tokio::spawn(replica::keep(api, instance, looks_sender, ending.clone()));
    // Nobody writes entries before its Lease is there: the others would take them for those of a dead replica.
    while let Some(look) = looks.recv().await {
        let is_done = look.is_ok();
        task.looked(look).await;
        if is_done {
            break;
        }
    }
    let task = tokio::spawn(async move {
        task.run(watches, writes, looks).await;
        ending.cancel();
        // It has a deadline of its own.
        let _ = lease.await;
    });
    Opened { store, configured, task }
}
