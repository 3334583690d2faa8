//! Renews this replica's own Lease, and reads the Leases of all replicas.

use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::api::Api;
use super::leases::{Lease, READ_INTERVAL, RENEWAL, VALIDITY};
use super::request::ApiError;

/// All Leases, or the error of the request.
#[derive(Debug)]
pub(super) struct LeaseList {
    pub(super) list: Result<Vec<Lease>, ApiError>,
    /// When the own Lease was last renewed; `None` if it never was.
    pub(super) renewed: Option<Instant>,
}

/// Renews the Lease until `ending` is cancelled, then releases it; the Leases that are read go to
/// `lists`.
pub(super) async fn run(
    api: Api,
    instance: String,
    lists: mpsc::Sender<LeaseList>,
    ending: CancellationToken,
) {
    let mut ticks = interval(READ_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut renewed: Option<Instant> = None;
    let mut last_error = None;
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = ending.cancelled() => break,
        }
        let list = async {
            if renewed.is_none_or(|at| at.elapsed() + READ_INTERVAL > RENEWAL) {
                api.renew(&instance, Some(&instance), VALIDITY.as_secs()).await?;
                renewed = Some(Instant::now());
            }
            api.leases().await
        }
        .await;
        let error = list.as_ref().err().cloned();
        if let Some(error) = error.as_ref().filter(|_| error != last_error) {
            warn!(%error, "reading or renewing leases failed");
        }
        last_error = error;
        if lists.send(LeaseList { list, renewed }).await.is_err() {
            break;
        }
    }
    if let Err(error) = api.renew(&instance, None, 1).await {
        warn!(%error, "releasing the lease of this replica failed, it expires");
    }
}
