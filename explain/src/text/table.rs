//! Aligned columns, as kubectl prints them.

const COLUMNS: [&str; 8] =
    ["CONTAINER", "PROBE", "DECLARED", "SENT TO", "NOW", "FAILING FOR", "FAILURES", "LATENCY"];

/// Returns the rows below their headings; columns are two blanks apart.
pub(super) fn table(rows: Vec<[String; 8]>) -> String {
    let headings = COLUMNS.map(str::to_owned);
    let rows = rows.into_iter().map(|row| row.map(|cell| super::one_line(&cell)));
    let all: Vec<[String; 8]> = std::iter::once(headings).chain(rows).collect();
    let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 8] = std::array::from_fn(width);
    let line = |row: &[String; 8]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{:width$}", cell));
        let line = cells.collect::<Vec<_>>().join("  ");
        format!("{}\n", line.trim_end())
    };
    all.iter().map(line).collect()
}
