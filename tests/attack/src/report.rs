//! The results as a table and as JSON.

use std::path::{Path, PathBuf};

use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Value, json};

use crate::measurement::{Figures, Measurement, Row};

/// Returns a table with a line for each kind of honest client. A count is followed by the number of
/// lost requests, and times are in milliseconds.
pub fn table(measurements: &[Measurement]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header([
        "attack",
        "connections",
        "MiB",
        "honest",
        "before",
        "p50",
        "p99",
        "during",
        "p50",
        "p99",
        "after",
        "p50",
        "p99",
        "changed",
        "bar",
    ]);
    for measurement in measurements {
        for (number, row) in measurement.rows.iter().enumerate() {
            let head = match number {
                0 => [measurement.name.clone(), connections(measurement), memory(measurement)],
                _ => Default::default(),
            };
            let times = row.phases.iter().flat_map(|figures| {
                [format!("{}/{}", figures.count, figures.lost), millis(figures.p50), millis(figures.p99)]
            });
            let changed = row.phases.iter().map(|figures| figures.changed).sum::<u64>().to_string();
            let cells = head.into_iter().chain([row.name.clone()]).chain(times);
            table.add_row(cells.chain([changed, bar(row)]));
        }
    }
    for column in (4..14).chain([1, 2]) {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn connections(measurement: &Measurement) -> String {
    format!("{} of {}", measurement.most_open, measurement.attempts)
}

fn memory(measurement: &Measurement) -> String {
    let memory = measurement.memory;
    [memory.before, memory.most, memory.after].map(mib).join(" ")
}

/// Formats bytes as MiB.
pub fn mib(bytes: u64) -> String {
    (bytes >> 20).to_string()
}

fn millis(time: Option<f64>) -> String {
    time.map(|time| format!("{time:.1}")).unwrap_or_default()
}

fn bar(row: &Row) -> String {
    let bar = row.bar.map(|bar| format!("p99 <= {} ms", bar.as_millis())).unwrap_or_default();
    if row.holds() == Some(false) { format!("{bar}: NO") } else { bar }
}

/// Returns the results as JSON; times are in milliseconds and memory in bytes.
pub fn json(measurements: &[Measurement]) -> Value {
    measurements
        .iter()
        .map(|measurement| {
            let Measurement { name, rows, examples, memory, attempts, most_open } = measurement;
            json!({
                "attack": name,
                "connections": {"attempts": attempts, "mostOpen": most_open},
                "honest": rows.iter().map(row_json).collect::<Value>(),
                "memory": {"before": memory.before, "most": memory.most, "after": memory.after},
                "wrong": measurement.wrong(),
                "examples": examples,
            })
        })
        .collect()
}

fn row_json(row: &Row) -> Value {
    let [before, during, after] = row.phases.each_ref().map(figures_json);
    json!({
        "name": row.name, "before": before, "during": during, "after": after,
        "barMilliseconds": row.bar.map(|bar| bar.as_millis()), "holds": row.holds(),
    })
}

fn figures_json(figures: &Figures) -> Value {
    let Figures { count, lost, changed, p50, p99 } = figures;
    json!({"count": count, "lost": lost, "changed": changed, "p50": p50, "p99": p99})
}

/// Writes a JSON file to the target folder and returns its path.
///
/// # Errors
/// If the folder is not writable.
pub fn write(target: &Path, name: &str, value: &Value) -> std::io::Result<PathBuf> {
    std::fs::create_dir_all(target)?;
    let file = target.join(name);
    let text = serde_json::to_string_pretty(value).expect("a JSON value can be written");
    std::fs::write(&file, text + "\n")?;
    Ok(file)
}
