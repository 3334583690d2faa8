//! Which replicas are alive, and whether the API server is reachable.

use tokio::time::Instant;
use tracing::{info, warn};

use super::Task;
use crate::store::kubernetes::lease_task::LeaseList;
use crate::store::kubernetes::leases::Replicas;
use crate::store::kubernetes::request::ApiError;
use discovery::entries::Input;

impl Task {
    /// Processes the Leases: which replicas are alive, and whether the API server is reachable.
    pub(in super::super) async fn leases_read(&mut self, LeaseList { list, renewed }: LeaseList) {
        // A rejected request does not affect the other Leases, and it shows that the API server is
        // reachable.
        self.leases_unreachable = matches!(list, Err(ApiError::Unreachable(_)));
        self.update_reachability().await;
        self.update_isolation(renewed).await;
        let Ok(leases) = list else { return };
        let replicas = self.leases.update(self.now(), leases);
        for (instance, version) in replicas.stale {
            let api = self.api.clone();
            // Ignores errors, since another replica may have deleted it.
            tokio::spawn(async move { api.delete_lease(&instance, &version).await.ok() });
        }
        let Replicas { alive, released, .. } = replicas;
        if alive != self.alive {
            info!(replicas = ?alive, "live replicas changed");
            self.alive.clone_from(&alive);
            self.writer.set_alive(alive.clone());
            self.send_to_registry(Input::Replicas { alive, released }).await;
        }
    }

    /// Sends the agents of this replica to other ones before those take its entries over.
    async fn update_isolation(&mut self, renewed: Option<Instant>) {
        let Some(renewed) = renewed else { return };
        let ends = self.isolation.update(self.now(), renewed.saturating_duration_since(self.started));
        let is_isolated = self.isolation.is_isolated();
        let is_change = self
            .outputs
            .isolated
            .send_if_modified(|current| std::mem::replace(current, is_isolated) != is_isolated);
        if is_change && !is_isolated {
            info!("lease of this replica renewed again");
        }
        if ends {
            warn!("lease of this replica not renewed, ending the streams of its agents");
            self.send_to_registry(Input::EndReporters).await;
        }
    }

    /// Updates whether the API server is reachable, and the reason for degraded health.
    pub(super) async fn update_reachability(&mut self) {
        let unreachable = self.leases_unreachable || self.writer.is_unreachable();
        if unreachable != self.unreachable {
            self.unreachable = unreachable;
            if unreachable {
                warn!(entries = self.writer.pending_count(), "API server unreachable");
            } else {
                info!("API server reachable again");
            }
            self.send_to_registry(Input::StoreUnreachable(unreachable)).await;
        }
        let entries = self.writer.pending_count();
        let rejected = self.rejected.iter().next();
        let degraded = match rejected {
            _ if unreachable => Some(format!("store: API server unreachable, {entries} entries not written")),
            Some((key, text)) => Some(format!("store: API server rejected entry {key}: {text}")),
            None => None,
        };
        self.outputs.degraded.send_if_modified(|current| {
            let changed = current.is_some() != degraded.is_some();
            *current = degraded;
            changed
        });
    }
}
