//! Logs and counts events. State transitions are logged, individual reports are not.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tracing::{debug, info, warn};

use crate::config_dir::Configured;
use crate::metrics::{Metrics, RefusedReason};
use discovery::entries::{Event, Preserved, RejectionReason, Status};
use discovery::log_budget::LogBudget;
use discovery::objects::Key;
use discovery::snapshot::Snapshot;
use pacing::source::Source;

/// Counts an event of the state machine.
pub(super) fn count_event(event: &Event, metrics: &Metrics) {
    match event {
        Event::Report(outcome) => metrics.report(*outcome),
        Event::Rejected { reason, .. } => metrics.refused(match reason {
            RejectionReason::Node | RejectionReason::NameTaken => RefusedReason::Malformed,
            RejectionReason::Limit => RefusedReason::Limit,
            RejectionReason::Identity | RejectionReason::PeerAddress => RefusedReason::Permission,
        }),
        Event::ReporterReplaced { .. } => {
            metrics.reporters_replaced.inc();
        }
        // The state machine emits another event for a rejected stream.
        Event::PeerAddress { refused: false, .. } => {
            metrics.peer_address_mismatches.inc();
        }
        Event::Silent { .. } => {
            metrics.silent_agents.inc();
        }
        _ => {}
    }
}

/// Returns true if the client may cause another log line. After lines that were suppressed, their number
/// is logged.
pub(crate) fn is_within_budget(budget: &mut LogBudget, source: Option<Source>, now: Duration) -> bool {
    let Some(source) = source else { return true };
    let suppressed = budget.take(source, now);
    if let Some(suppressed @ 1..) = suppressed {
        warn!(%source, suppressed, "log lines suppressed, this client causes too many");
    }
    suppressed.is_some()
}

/// Logs an event of the state machine.
pub(super) fn log_event(event: &Event) {
    match event {
        Event::Registered { stream, key } => debug!(%key, stream, "stream registered"),
        Event::Pending { stream, key, reason } => {
            info!(%key, stream, reason, "stream waits for its group or entry")
        }
        Event::Report(_) => {}
        Event::Rejected { stream, reason } => warn!(stream, ?reason, "stream rejected"),
        Event::Transition { key, condition: Some(condition), served } => {
            let (status, reason) = (condition.status, condition.reason);
            let message = condition.message.as_str();
            match status {
                Status::True => info!(%key, %status, %reason, served, "condition changed"),
                _ => warn!(%key, %status, %reason, message, served, "condition changed"),
            }
        }
        Event::Transition { key, condition: None, served } => {
            info!(%key, served, "condition removed, entry is not health-checked")
        }
        Event::Deleted { key, reason } => info!(%key, ?reason, "entry deleted"),
        Event::ReporterReplaced { key, peer } => {
            info!(%key, %peer, "reporting stream replaced by a newer one")
        }
        Event::DuplicateAgent { key } => {
            warn!(%key, "reporting stream replaced more than 5 times within a minute: do two machines report on this entry?");
        }
        Event::PeerAddress { key, peer, refused } => {
            warn!(%key, %peer, refused, "peer address does not match the entry (--peer-address-check)");
        }
        Event::Silent { key } => warn!(%key, "agent stopped reporting"),
        Event::ProbeNacked { key, text } => warn!(%key, text, "agent rejected the probe"),
    }
}

/// Logs each new configuration error once, all warnings, and that all errors were fixed.
pub(super) fn log_configuration(before: &[String], configured: &Configured) {
    let new = configured.errors.iter().filter(|error| !before.contains(error));
    new.for_each(|error| warn!(error, "configuration error"));
    for warning in &configured.warnings {
        warn!(warning, "configuration warning");
    }
    if configured.errors.is_empty() && !before.is_empty() {
        info!("configuration errors fixed");
    }
    let config = &configured.config;
    let (groups, entries, services) = (config.groups.len(), config.entries.len(), config.services.len());
    info!(groups, entries, services, errors = configured.errors.len(), "configuration loaded");
}

/// Logs each service that has no outbound listener or route for a port, once.
pub(super) fn log_outbound_conflicts(before: &Snapshot, now: &Snapshot) {
    let before: BTreeSet<&String> = before.outbound_conflicts().collect();
    for conflict in now.outbound_conflicts().filter(|conflict| !before.contains(conflict)) {
        warn!(conflict, "service without outbound listener (--outbound-listeners)");
    }
}

/// Logs each exported host and port that another namespace exports too, once.
pub(super) fn log_export_conflicts(before: &Snapshot, now: &Snapshot) {
    for conflict in now.export_conflicts().difference(before.export_conflicts()) {
        warn!(conflict, "host exported by several namespaces");
    }
}

/// Logs which entries are preserved as endpoints in spite of their state, or no longer.
pub(super) fn log_preserved(
    before: &BTreeMap<Key, Preserved>,
    now: &BTreeMap<Key, Preserved>,
    mut may_log: impl FnMut(&Key) -> bool,
) {
    let is_endpoint = |preserved: &&Preserved| preserved.is_endpoint();
    for (key, preserved) in now.iter().filter(|(_, preserved)| preserved.is_endpoint()) {
        if before.get(key).filter(is_endpoint).is_some() || !may_log(key) {
            continue;
        }
        match preserved {
            Preserved::LastEndpoint => {
                warn!(%key, "unhealthy entry preserved as the last endpoint (--last-endpoint)")
            }
            Preserved::Unhealthy => {
                warn!(%key, "unhealthy entry preserved as an endpoint, panic threshold reached (--max-unhealthy-percent)")
            }
            Preserved::Silent | Preserved::Recovering => warn!(
                %key,
                "silent entry preserved as an endpoint, self-preservation (--max-silent-percent); `app-health workloads release` removes it"
            ),
            Preserved::Removed => {}
        }
    }
    for (key, _) in before.iter().filter(|(_, preserved)| preserved.is_endpoint()) {
        if now.get(key).filter(is_endpoint).is_none() && may_log(key) {
            info!(%key, "entry no longer preserved as an endpoint");
        }
    }
}
