//! The table of the status page about the workload.

use serde_json::{Value, json};
use serving::page::{Cell, Table, Tone};
use workload_health::State;

use super::HealthSnapshot;
use address::without_query;

pub(super) fn workload_table(snapshot: &HealthSnapshot) -> Table {
    let HealthSnapshot { status, probe, history } = snapshot;
    let verdict = &status.verdict;
    let row = |name: &str, cell| vec![Cell::text(name), cell];
    let tone = match verdict.state {
        State::Healthy => Tone::Good,
        State::Unhealthy => Tone::Bad,
        State::Unknown => Tone::Plain,
    };
    let (successes, failures) = history.totals();
    let mut rows = vec![
        row("state", Cell::status(tone, verdict.state.word())),
        row("since", Cell::At { at: status.since }),
        row("reason", Cell::text(verdict.reason.word())),
        row("message", Cell::text(&verdict.message)),
        row("last results", Cell::Results { results: history.results() }),
        row("failures", Cell::text(format!("{failures} of {}", successes + failures))),
        row("generation of the report", Cell::text(verdict.generation.to_string())),
    ];
    if let Some(at) = status.last_probe {
        rows.insert(2, row("last probe", Cell::At { at }));
    }
    if let Some(probe) = probe {
        rows.push(row("probe", Cell::text(without_secrets(probe).to_string())));
    }
    if let Some(error) = history.config_error() {
        rows.push(row("rejected configuration", Cell::status(Tone::Bad, error)));
    }
    Table {
        id: "workload",
        caption: "Workload",
        note: "The agent probes the application of this machine.".to_owned(),
        columns: &["item", "value"],
        rows,
    }
}

/// Returns the probe without queries of paths and arguments of commands, which may contain secrets. Its
/// headers have no values already.
fn without_secrets(probe: &Value) -> Value {
    match probe {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| match value {
                Value::String(path) if key == "path" => (key.clone(), without_query(path).into()),
                Value::Array(command) if key == "command" && command.len() > 1 => {
                    (key.clone(), json!([command.first(), "…"]))
                }
                other => (key.clone(), without_secrets(other)),
            })
            .collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;
