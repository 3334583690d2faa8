//! What the page shows besides the machines: their numbers, the replicas, and the streams of Envoys.

use std::collections::BTreeMap;

use serde::Serialize;
use serving::page::{Cell, Table, Tone};

use crate::server::ClientView;
use discovery::entries::WorkloadView;
use discovery::view::RegistryView;

/// Number of machines that the page shows without JavaScript.
const MACHINES: usize = 200;
/// Number of streams that the page shows, those that are behind first.
const STREAMS: usize = 200;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Overview {
    instance: String,
    store: &'static str,
    startup_grace: bool,
    config_errors: Vec<String>,
    /// Services in self-preservation.
    self_preserving_services: Vec<String>,
    /// Conditions under which the server is ready but degraded.
    degraded: Vec<String>,
    counts: Counts,
    /// Number of machines whose agents report to each replica, by its controller.
    replicas: BTreeMap<String, usize>,
    streams: Vec<StreamRow>,
    /// Number of streams, of which `streams` may show a part.
    all_streams: usize,
    /// Number of streams that have not acknowledged their newest version.
    behind: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    all: usize,
    served: usize,
    removed: usize,
    self_preserved: usize,
    connected: usize,
}

/// One subscription of an Envoy.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct StreamRow {
    node: String,
    #[serde(rename = "type")]
    kind: &'static str,
    version: String,
    acked: Option<String>,
    nack: Option<String>,
    /// Seconds for which the client has read nothing.
    blocked_seconds: u64,
    is_behind: bool,
}

impl Overview {
    pub(super) fn new(
        instance: &str,
        store: &'static str,
        view: &RegistryView,
        degraded: Vec<String>,
        clients: Vec<ClientView>,
    ) -> Self {
        let mut counts = Counts { all: view.workloads.len(), ..Counts::default() };
        let mut replicas = BTreeMap::new();
        for workload in &view.workloads {
            let is_served = workload.endpoint == "served";
            counts.served += usize::from(is_served);
            counts.removed += usize::from(!is_served);
            counts.self_preserved += usize::from(workload.self_preserved);
            counts.connected += usize::from(workload.agent.as_ref().is_some_and(|agent| agent.connected));
            if let Some(controller) = &workload.controller {
                *replicas.entry(controller.clone()).or_default() += 1;
            }
        }
        let mut streams: Vec<StreamRow> = clients.into_iter().map(stream_row).collect();
        let all_streams = streams.len();
        let behind = streams.iter().filter(|stream| stream.is_behind).count();
        streams.sort_by_key(|stream| !stream.is_behind);
        streams.truncate(STREAMS);
        Self {
            instance: instance.to_owned(),
            store,
            startup_grace: view.startup_grace,
            config_errors: view.config_errors.clone(),
            self_preserving_services: view.self_preserving_services.clone(),
            degraded,
            counts,
            replicas,
            streams,
            all_streams,
            behind,
        }
    }

    /// Returns what the page shows without JavaScript.
    pub(super) fn tables(&self, view: &RegistryView) -> Vec<Table> {
        let Counts { all, served, removed, self_preserved, connected } = self.counts;
        let row = |name: &str, value: String| vec![Cell::text(name), Cell::text(value)];
        let mut rows = vec![
            row("instance", self.instance.clone()),
            row("store", self.store.to_owned()),
            row("machines", all.to_string()),
            row("served", served.to_string()),
            row("removed", removed.to_string()),
            row("in self-preservation", self_preserved.to_string()),
            row("agents connected", connected.to_string()),
            row("streams of Envoys", format!("{}, of which {} are behind", self.all_streams, self.behind)),
        ];
        let problems = self.degraded.iter().chain(&self.config_errors);
        rows.extend(problems.map(|line| vec![Cell::text("degraded"), Cell::status(Tone::Bad, line)]));
        let overview = Table {
            id: "overview",
            caption: "Overview",
            note: String::new(),
            columns: &["item", "value"],
            rows,
        };
        let machines = Table {
            id: "machines",
            caption: "Machines",
            note: match all {
                0..=MACHINES => String::new(),
                _ => format!("The first {MACHINES} of {all}; with JavaScript, all are shown."),
            },
            columns: &["machine", "endpoint", "why", "condition", "reason", "address"],
            rows: view.workloads.iter().take(MACHINES).map(machine_row).collect(),
        };
        vec![overview, machines]
    }
}

fn machine_row(workload: &WorkloadView) -> Vec<Cell> {
    let condition = workload.condition.as_ref().map(|view| &view.condition);
    let tone = if workload.endpoint == "served" { Tone::Good } else { Tone::Bad };
    vec![
        Cell::text(format!("{}/{}", workload.namespace, workload.name)),
        Cell::status(tone, workload.endpoint),
        Cell::text(&workload.why),
        Cell::text(condition.map_or_else(String::new, |condition| condition.status.to_string())),
        Cell::text(condition.map_or_else(String::new, |condition| condition.reason.to_string())),
        Cell::text(&workload.address),
    ]
}

fn stream_row(client: ClientView) -> StreamRow {
    let ClientView { node, view, blocked_ms } = client;
    let is_behind = view.acked.as_ref() != Some(&view.version);
    StreamRow {
        node,
        kind: view.kind,
        version: view.version,
        acked: view.acked,
        nack: view.nack,
        blocked_seconds: blocked_ms / 1000,
        is_behind,
    }
}
