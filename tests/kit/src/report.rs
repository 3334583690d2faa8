//! The results of a benchmark: rows, formatted as a table or as JSON.

use std::path::{Path, PathBuf};

use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Value, json};

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What was measured, for example `p50 through the filter`.
    pub name: String,
    pub value: f64,
    /// The unit, for example `us`, `MiB` or `ratio`.
    pub unit: &'static str,
    /// The target that the value must not exceed, if there is one.
    pub bar: Option<f64>,
}

impl Row {
    /// Returns a figure without a target.
    pub fn new(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { name: name.into(), value, unit, bar: None }
    }

    #[must_use]
    pub fn at_most(self, bar: f64) -> Self {
        Self { bar: Some(bar), ..self }
    }

    /// Returns whether the target is met; `None` without a target.
    pub fn holds(&self) -> Option<bool> {
        self.bar.map(|bar| self.value <= bar)
    }
}

pub fn table(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["figure", "value", "unit", "bar", "holds"]);
    for row in rows {
        let bar = row.bar.map(|bar| format!("<= {bar}")).unwrap_or_default();
        let holds = match row.holds() {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "",
        };
        table.add_row([row.name.clone(), digits(row.value), row.unit.into(), bar, holds.into()]);
    }
    if let Some(column) = table.column_mut(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Returns the number of decimal places that gives three significant digits.
fn digits(value: f64) -> String {
    if value.abs() < 10.0 { format!("{value:.3}") } else { format!("{value:.1}") }
}

/// Formats the rows as a list of `{"bar", "holds", "name", "unit", "value"}`, with null where there
/// is no target.
pub fn json(rows: &[Row]) -> Value {
    rows.iter()
        .map(|row| {
            json!({
                "name": row.name, "value": row.value, "unit": row.unit, "bar": row.bar, "holds": row.holds(),
            })
        })
        .collect()
}

/// Writes `bench/<area>.json` in the target folder and returns its path.
///
/// # Errors
/// If the folder is not writable.
pub fn write(target: &Path, area: &str, rows: &[Row]) -> std::io::Result<PathBuf> {
    let folder = target.join("bench");
    std::fs::create_dir_all(&folder)?;
    let file = folder.join(format!("{area}.json"));
    let text = serde_json::to_string_pretty(&json(rows)).expect("a JSON value can be written");
    std::fs::write(&file, text + "\n")?;
    Ok(file)
}

/// Returns the quantile (0 to 1) of `values` as the nearest of them, without interpolation.
///
/// # Panics
/// If `values` is empty.
pub fn quantile(values: &[f64], quantile: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index into a list in memory, rounded intentionally"
    )]
    let index = ((sorted.len() - 1) as f64 * quantile).round() as usize;
    sorted[index]
}

/// Returns the median of the ratios of two figures that were measured in the same rounds.
///
/// # Panics
/// If there is no round.
pub fn median_ratio(figures: &[f64], baseline: &[f64]) -> f64 {
    let ratios: Vec<f64> = figures.iter().zip(baseline).map(|(figure, baseline)| figure / baseline).collect();
    median(&ratios)
}

/// Returns the median of `values`.
///
/// # Panics
/// If `values` is empty.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

#[cfg(test)]
mod tests;
