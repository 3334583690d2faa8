//! Renews this replica's own Lease, and reads the Leases of all replicas.

use std::time::Duration;

use time::OffsetDateTime;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::api::{Api, ApiError};
use super::leases::{Lease, READ_INTERVAL, RENEWAL, VALIDITY};
use discovery::entries::Timestamp;

/// All Leases, or the error of the request.
pub(super) type LeaseList = Result<Vec<Lease>, ApiError>;

/// Returns the time in the format of a Lease.
fn now() -> String {
    let now = Timestamp::from_seconds(OffsetDateTime::now_utc().unix_timestamp()).to_string();
    now.replace('Z', ".000000Z")
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
    let mut last_logged = String::new();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = ending.cancelled() => break,
        }
        let mut failed = None;
        if renewed.is_none_or(|at| at.elapsed() + READ_INTERVAL > RENEWAL) {
            match api.renew(&instance, Some(&instance), &now(), VALIDITY).await {
                Ok(()) => renewed = Some(Instant::now()),
                Err(error) => failed = Some(error),
            }
        }
        let list = match failed {
            None => api.leases().await,
            Some(error) => Err(error),
        };
        let text = list.as_ref().err().map(ToString::to_string).unwrap_or_default();
        if text != last_logged && !text.is_empty() {
            warn!(error = text, "reading or renewing leases failed");
        }
        last_logged = text;
        if lists.send(list).await.is_err() {
            break;
        }
    }
    if let Err(error) = api.renew(&instance, None, &now(), Duration::from_secs(1)).await {
        warn!(%error, "releasing the lease of this replica failed, it expires");
    }
}
