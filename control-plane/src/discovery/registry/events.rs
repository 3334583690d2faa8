//! Lines of the log and counts. Transitions only: never a line per report.

use std::collections::BTreeSet;

use tracing::{debug, info, warn};

use crate::discovery::config_dir::Configured;
use crate::discovery::metrics::{Metrics, RefusedReason, ReportResult};
use discovery::entries::{Event, Refusal, Status};
use discovery::objects::Key;

/// What became of the entries.
pub(super) fn noted(event: &Event, metrics: &Metrics) {
    match event {
        Event::Registered { stream, key } => debug!(%key, stream, "registered"),
        Event::Pending { stream, key, why } => info!(%key, stream, why, "stream is pending"),
        Event::Applied { .. } => metrics.report(ReportResult::Applied),
        Event::Repeated { .. } => metrics.report(ReportResult::Repeated),
        Event::Stale { .. } => metrics.report(ReportResult::Stale),
        Event::Refused { refusal: Refusal::NoEntry, .. } => metrics.report(ReportResult::Refused),
        Event::Refused { stream, refusal } => {
            metrics.refused(match refusal {
                Refusal::Node | Refusal::NameTaken | Refusal::NoEntry => RefusedReason::Malformed,
                Refusal::Identity | Refusal::PeerAddress => RefusedReason::Permission,
            });
            warn!(stream, ?refusal, "stream refused");
        }
        Event::Transition { key, condition: Some(condition), served } => {
            let (status, reason) = (condition.status, condition.reason);
            let message = condition.message.as_str();
            match status {
                Status::True => info!(%key, %status, %reason, served, "condition changed"),
                _ => warn!(%key, %status, %reason, message, served, "condition changed"),
            }
        }
        Event::Transition { key, condition: None, served } => info!(%key, served, "not health-checked"),
        Event::Deleted { key, gone } => info!(%key, ?gone, "entry deleted"),
        Event::Takeover { key, peer } => {
            metrics.takeover();
            info!(%key, %peer, "another stream reports now");
        }
        Event::DuplicateAgent { key } => {
            warn!(%key, "DuplicateAgent: more than 5 takeovers in a minute, do two machines report on it?");
        }
        Event::PeerAddress { key, peer, refused } => {
            warn!(%key, %peer, refused, "the peer's address is not the entry's");
            // A refusal is told by itself.
            if !refused {
                metrics.peer_address_mismatch();
            }
        }
        Event::Silent { key } => {
            metrics.silent();
            warn!(%key, "agent is silent");
        }
        Event::ProbeNacked { key, text } => warn!(%key, text, "agent refused the probe"),
    }
}

/// Each error of the configuration once, and that there is none any more.
pub(super) fn configured(before: &[String], configured: &Configured) {
    let new = configured.errors.iter().filter(|error| !before.contains(error));
    new.for_each(|error| warn!(error, "configuration"));
    for warning in &configured.warnings {
        warn!(warning, "configuration");
    }
    if configured.errors.is_empty() && !before.is_empty() {
        info!("configuration: no errors any more");
    }
    let config = &configured.config;
    let (groups, entries, services) = (config.groups.len(), config.entries.len(), config.services.len());
    info!(groups, entries, services, errors = configured.errors.len(), "configuration read");
}

/// Whom the policy for last endpoints keeps.
pub(super) fn kept(before: &BTreeSet<Key>, now: &BTreeSet<Key>) {
    now.difference(before).for_each(|key| warn!(%key, "kept as the last endpoint"));
    before.difference(now).for_each(|key| info!(%key, "no longer kept as the last endpoint"));
}
