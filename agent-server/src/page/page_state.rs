//! What the page shows, as a value. It is computed from the state of the agent and from Envoy's
//! statistics, without I/O.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use probe::Reason;
use serde::Serialize;
use serving::page::{Cell, Table, Tone};

use super::envoy_stats::{Length, ProbeCounters, ProbeName};
use super::probe_history::{PROBES, ProbeHistory};
use agent_state::state::age_text;
use envoy_bootstrap::declared_probe::DeclaredProbe;
use envoy_bootstrap::filter_choice::FilterChoice;
use readiness::Snapshot;
use readiness::process_history::ProcessEvent;

/// The page's contents. They change only when something other than the time has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct PageState {
    /// One sentence, which screen readers announce when it changes.
    pub(super) summary: String,
    pub(super) tone: Tone,
    pub(super) tables: Vec<Table>,
}

/// The values from which the contents are computed.
pub(super) struct Sources<'a> {
    pub(super) snapshot: &'a Snapshot,
    /// Age of the stored xDS configuration that Envoy uses.
    pub(super) stale: Option<Duration>,
    pub(super) processes: &'a [ProcessEvent],
    pub(super) filter: Option<FilterChoice>,
    pub(super) declared: &'a [DeclaredProbe],
    /// Envoy's statistics, or why there are none.
    pub(super) probes: Result<&'a ProbeHistory, &'static str>,
    /// Names and values without secrets.
    pub(super) configuration: &'a Arc<[(&'static str, String)]>,
    /// Tables about the workload of a virtual machine.
    pub(super) workload: Vec<Table>,
}

impl PageState {
    pub(super) fn new(sources: Sources) -> Self {
        let Sources { snapshot, stale, processes, filter, declared, probes, configuration, workload } =
            sources;
        let (probe_table, failing) = probe_table(declared, probes);
        let ready = match snapshot.pending.first() {
            None => "Envoy is ready".to_owned(),
            Some(pending) => format!("Envoy is not ready: {}", pending.reason),
        };
        let probing = match (failing, probe_table.rows.len()) {
            (_, 0) => String::new(),
            (0, _) => ", and no probe fails".to_owned(),
            (1, all) => format!(", and 1 of {all} probes fails"),
            (_, all) => format!(", and {failing} of {all} probes fail"),
        };
        let mut tables = vec![readiness_table(snapshot, stale), probe_table];
        tables.extend(workload);
        tables.extend([
            process_table(processes),
            filter_table(filter, snapshot, probes),
            configuration_table(configuration),
        ]);
        Self {
            summary: format!("{ready}{probing}."),
            tone: if snapshot.is_ready() && failing == 0 { Tone::Good } else { Tone::Bad },
            tables,
        }
    }
}

fn readiness_table(snapshot: &Snapshot, stale: Option<Duration>) -> Table {
    let pending = snapshot.pending.iter().map(|pending| {
        vec![
            Cell::text(pending.condition.name()),
            Cell::status(Tone::Bad, &pending.reason),
            Cell::At { at: pending.since },
        ]
    });
    let met = snapshot.met.iter().map(|(condition, since)| {
        vec![Cell::text(condition.name()), Cell::status(Tone::Good, "met"), Cell::At { at: *since }]
    });
    let note = match stale {
        Some(age) => format!("Envoy uses a stored xDS configuration that is {} old.", age_text(age)),
        None => String::new(),
    };
    Table {
        id: "readiness",
        caption: "Readiness",
        note: format!("Phase: {}. {note}", snapshot.phase.name()).trim_end().to_owned(),
        columns: &["condition", "status", "since"],
        rows: pending.chain(met).collect(),
    }
}

/// Returns the table, and the number of probes that fail.
fn probe_table(declared: &[DeclaredProbe], probes: Result<&ProbeHistory, &'static str>) -> (Table, usize) {
    let empty = ProbeHistory::default();
    let history = probes.unwrap_or(&empty);
    let mut names: BTreeSet<ProbeName> = history.stats().probes.keys().cloned().collect();
    names.extend(declared.iter().map(name_of));
    let more = names.len().saturating_sub(PROBES);
    let mut failing = 0;
    let rows = names.iter().take(PROBES).map(|name| {
        let declared = declared.iter().find(|probe| name_of(probe) == *name);
        let counters = history.stats().probes.get(name).cloned().unwrap_or_default();
        let (total, failed) = totals(&counters);
        let status = match counters.success {
            _ if total == 0 => Cell::status(Tone::Plain, "no result yet"),
            Some(true) => Cell::status(Tone::Good, "succeeds"),
            Some(false) => Cell::status(Tone::Bad, "fails"),
            None => Cell::status(Tone::Plain, "unknown"),
        };
        failing += usize::from(matches!(status, Cell::Status { tone: Tone::Bad, .. }));
        let cluster = declared.and_then(|probe| probe.cluster);
        let length = cluster.and_then(|cluster| history.stats().lengths.get(cluster).copied());
        let runs = history.results(name).into_iter();
        vec![
            Cell::text(format!("{}/{}", name.container, name.kind)),
            Cell::text(declared.map_or("–", |probe| probe.target.as_str())),
            status,
            Cell::text(history.last_reason(name).map_or("–", Reason::word)),
            Cell::text(latency(length.unwrap_or_default())),
            Cell::Results {
                results: runs
                    .map(|(reason, count)| (reason.word().to_owned(), count, reason.is_success()))
                    .collect(),
            },
            Cell::text(rate(failed, total)),
        ]
    });
    let rows: Vec<Vec<Cell>> = rows.collect();
    let mut note = "Failures are counted since Envoy's start, results since this page was opened. The \
                    latency is that of all probes of the same scheme."
        .to_owned();
    if let Err(reason) = probes {
        note = format!("There are no results: {reason}.");
    }
    if more > 0 {
        note += &format!(" {more} more probes are not shown.");
    }
    let columns = &["probe", "target", "status", "reason", "median / p99", "last results", "failures"];
    (Table { id: "probes", caption: "Probes", note, columns, rows }, failing)
}

fn name_of(probe: &DeclaredProbe) -> ProbeName {
    ProbeName { container: probe.container.clone(), kind: probe.kind.word().to_owned() }
}

/// Returns the number of results and of failures. Malformed requests say nothing about the application.
fn totals(counters: &ProbeCounters) -> (u64, u64) {
    let results = counters.reasons.iter().filter(|(reason, _)| !reason.is_client_error());
    let (mut total, mut failed) = (0, 0);
    for (reason, count) in results {
        total += count;
        failed += if reason.is_success() { 0 } else { *count };
    }
    (total, failed)
}

#[expect(clippy::cast_precision_loss, reason = "a percentage needs no precision")]
fn rate(failed: u64, total: u64) -> String {
    match total {
        0 => "–".to_owned(),
        _ => format!("{failed} of {total} ({:.1} %)", failed as f64 * 100.0 / total as f64),
    }
}

fn latency(length: Length) -> String {
    match (length.median, length.p99) {
        (Some(median), Some(p99)) => format!("{median:.1} / {p99:.1} ms"),
        _ => "–".to_owned(),
    }
}

fn process_table(processes: &[ProcessEvent]) -> Table {
    let rows = processes.iter().rev().map(|event| {
        vec![
            Cell::text(event.epoch.to_string()),
            Cell::text(event.kind.word()),
            Cell::text(&event.reason),
            Cell::At { at: event.at },
        ]
    });
    Table {
        id: "processes",
        caption: "Starts and exits of Envoy",
        note: "The last 20, newest first.".to_owned(),
        columns: &["process", "event", "reason", "age"],
        rows: rows.collect(),
    }
}

fn filter_table(
    filter: Option<FilterChoice>,
    snapshot: &Snapshot,
    probes: Result<&ProbeHistory, &'static str>,
) -> Table {
    let row = |name: &str, value: String| vec![Cell::text(name), Cell::text(value)];
    let mut rows = vec![row("agent", env!("CARGO_PKG_VERSION").to_owned())];
    rows.push(row("Envoy", snapshot.envoy.clone().unwrap_or_else(|| "unknown".to_owned())));
    match filter {
        Some(FilterChoice { form, reason }) => {
            rows.push(row("form of the filter", form.word().to_owned()));
            rows.push(row("chosen because", reason.text().to_owned()));
        }
        None => rows.push(row("form of the filter", "unknown, the agent did not render it".to_owned())),
    }
    if let Ok(history) = probes {
        let unknown = history.stats().unknown.to_string();
        rows.push(row("requests for undeclared probes, with the agent's own checks", unknown));
        rows.push(row("rejected configurations", history.stats().rejected.to_string()));
    }
    Table {
        id: "filter",
        caption: "Versions and filter",
        note: String::new(),
        columns: &["item", "value"],
        rows,
    }
}

fn configuration_table(configuration: &[(&'static str, String)]) -> Table {
    Table {
        id: "configuration",
        caption: "Configuration",
        note: "Without headers and queries, which may contain secrets.".to_owned(),
        columns: &["setting", "value"],
        rows: configuration.iter().map(|(name, value)| vec![Cell::text(*name), Cell::text(value)]).collect(),
    }
}

#[cfg(test)]
mod tests;
