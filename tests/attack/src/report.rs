//! The results as a table and as JSON.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Value, json};

use crate::attacks::FEW;
use crate::cost::{Cost, ProcessCost};
use crate::measurement::{Figures, Measurement, Row};

/// Returns what each attack cost the attacked processes.
pub fn costs(measurements: &[Measurement]) -> Table {
    let mut table = new_table(&[
        "listener",
        "attack",
        "sources",
        "connections",
        "held",
        "MiB before",
        "most",
        "CPU %",
        "log KiB",
        "bars",
    ]);
    for measurement in measurements {
        let Measurement { listener, attack, cost, most_open, attempts, .. } = measurement;
        let memory = |bytes: fn(&ProcessCost) -> u64| {
            let each = cost.processes.iter().map(|process| mib(bytes(process)));
            each.collect::<Vec<_>>().join("+")
        };
        let broken = measurement.broken();
        table.add_row([
            listener.clone(),
            attack.clone(),
            cost.sources.to_string(),
            format!("{most_open} of {attempts}"),
            cost.connections().to_string(),
            memory(|process| process.before),
            memory(|process| process.most),
            format!("{:.0}", cost.cpu_percent()),
            format!("{:.1}", kib(cost.log_per_minute())),
            if broken.is_empty() { "hold".to_owned() } else { format!("NO: {}", broken.join("; ")) },
        ]);
    }
    right(&mut table, 2..9);
    table
}

/// Returns the highest cost on each listener of any attack of one or two sources.
pub fn listeners(measurements: &[Measurement]) -> Table {
    let mut table = new_table(&["listener", "attacks", "held", "MiB grown", "CPU %", "log KiB"]);
    for (listener, of_listener) in by_listener(measurements) {
        let most = |value: fn(&Cost) -> f64| {
            of_listener.iter().map(|measurement| value(&measurement.cost)).fold(0.0, f64::max)
        };
        table.add_row([
            listener.to_owned(),
            of_listener.len().to_string(),
            format!("{:.0}", most(|cost| cost.connections() as f64)),
            format!("{:.1}", most(|cost| kib(cost.growth()) / 1024.0)),
            format!("{:.0}", most(Cost::cpu_percent)),
            format!("{:.1}", most(|cost| kib(cost.log_per_minute()))),
        ]);
    }
    right(&mut table, 1..6);
    table
}

fn by_listener(measurements: &[Measurement]) -> BTreeMap<&str, Vec<&Measurement>> {
    let mut listeners = BTreeMap::<&str, Vec<&Measurement>>::new();
    for measurement in measurements.iter().filter(|measurement| measurement.cost.sources <= FEW) {
        listeners.entry(&measurement.listener).or_default().push(measurement);
    }
    listeners
}

/// Returns a table with a line for each kind of honest client. A count is followed by the number of
/// lost requests, and times are in milliseconds.
pub fn honest(measurements: &[Measurement]) -> Table {
    let mut table = new_table(&[
        "attack", "honest", "before", "p50", "p99", "during", "p50", "p99", "after", "p50", "p99", "changed",
        "bar",
    ]);
    for measurement in measurements {
        for (number, row) in measurement.rows.iter().enumerate() {
            let name = if number == 0 { measurement.name() } else { String::new() };
            let times = row.phases.iter().flat_map(|figures| {
                [format!("{}/{}", figures.count, figures.lost), millis(figures.p50), millis(figures.p99)]
            });
            let changed = row.phases.iter().map(|figures| figures.changed).sum::<u64>().to_string();
            table.add_row([name, row.name.clone()].into_iter().chain(times).chain([changed, bar(row)]));
        }
    }
    right(&mut table, 2..12);
    table
}

fn new_table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header);
    table
}

fn right(table: &mut Table, columns: Range<usize>) {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

fn kib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0
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
            let Measurement { listener, attack, rows, examples, cost, attempts, most_open } = measurement;
            json!({
                "listener": listener,
                "attack": attack,
                "connections": {"attempts": attempts, "mostOpen": most_open},
                "honest": rows.iter().map(row_json).collect::<Value>(),
                "cost": cost_json(cost),
                "wrong": measurement.wrong(),
                "examples": examples,
                "brokenBars": measurement.broken(),
            })
        })
        .collect()
}

fn cost_json(cost: &Cost) -> Value {
    let processes = cost.processes.iter().map(|process| {
        let ProcessCost { name, before, most, connections, cpu, has_exited } = process;
        json!({
            "process": name, "memory": {"before": before, "most": most}, "connections": connections,
            "cpuSeconds": cpu.as_secs_f64(), "hasExited": has_exited,
        })
    });
    json!({
        "processes": processes.collect::<Value>(), "logBytesPerMinute": cost.log_per_minute(),
        "memory": {"most": cost.most, "limit": cost.limit}, "sources": cost.sources,
        "seconds": cost.length.as_secs_f64(),
    })
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
