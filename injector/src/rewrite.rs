//! Rewrites the probes of a Pod. All changes are planned first and then applied together, or none
//! if the table of probes cannot be written.

mod change;
mod walk;

use serde_json::{Value, json};

use crate::pod;
use crate::record::Record;
use crate::table::{self, Table};
use crate::warning::{Code, Warning, quote};
use crate::{Probe, TABLE_VARIABLE};

pub(super) use walk::Sidecar;

#[derive(Debug, Default)]
pub(super) struct Rewriting {
    /// The value of the sidecar's environment variable, if it is set.
    pub table: Option<String>,
    /// Every probe or hook that uses the network.
    pub probes: Vec<Probe>,
    /// One warning for each probe that was not rewritten.
    pub warnings: Vec<Warning>,
}

/// Rewrites the Pod's probes to `status_port`. `name` is the sidecar's name, which is unique in the
/// Pod.
pub(super) fn rewrite(of: &mut Value, name: &str, status_port: u16) -> Rewriting {
    let Some(sidecar) = Sidecar::find(&of["spec"], name) else { return Rewriting::default() };
    let unreadable = |text: String, code| {
        let warnings = vec![Warning::of_field(code, name, "env", format!("{TABLE_VARIABLE}: {text}"))];
        Rewriting { warnings, ..Rewriting::default() }
    };
    let before = match variable(&of["spec"][sidecar.list][sidecar.index]) {
        Ok(before) => before.map(str::to_owned),
        Err(text) => return unreadable(text, Code::Table),
    };
    let table = match Table::read(before.as_deref().unwrap_or_default(), status_port) {
        Ok(table) => table,
        Err(text) => return unreadable(text, Code::Table),
    };
    let mut record = Record::read(of);
    let plan = walk::plan(&of["spec"], &sidecar, status_port, &table, &record);
    let mut after = table.clone();
    for change in &plan.changes {
        if let Some((key, entry)) = &change.entry {
            after.insert(key.clone(), entry.clone());
        }
    }
    let text = if after == table { before.clone() } else { Some(after.text()) };
    if text.as_ref().is_some_and(|text| text.len() > table::LIMIT) {
        return unreadable(format!("more than {} KiB", table::LIMIT >> 10), Code::TableSize);
    }
    for change in plan.changes {
        change.apply(&mut of["spec"], status_port, &mut record);
    }
    record.write(of);
    if let Some(text) = text.as_ref().filter(|_| text != before) {
        set_variable(&mut of["spec"][sidecar.list][sidecar.index], text);
    }
    Rewriting { table: text, probes: plan.probes, warnings: plan.warnings }
}

/// Returns the value of the environment variable, `None` if it is absent. If it is set twice, the
/// last one counts. `valueFrom` is an error.
fn variable(sidecar: &Value) -> Result<Option<&str>, String> {
    let Some(env) = pod::field(sidecar, "env") else { return Ok(None) };
    let Some(env) = env.as_array() else { return Err("env must be a list".to_owned()) };
    let Some(entry) = env.iter().rev().find(|entry| pod::name(entry) == TABLE_VARIABLE) else {
        return Ok(None);
    };
    if pod::field(entry, "valueFrom").is_some() {
        return Err("valueFrom cannot be read".to_owned());
    }
    match pod::field(entry, "value") {
        None => Ok(Some("")),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(format!("{}: must be a string", quote(other))),
    }
}

fn set_variable(sidecar: &mut Value, text: &str) {
    let env = pod::list_mut(sidecar, "env");
    match env.iter_mut().rev().find(|entry| pod::name(entry) == TABLE_VARIABLE) {
        Some(entry) => entry["value"] = text.into(),
        None => env.push(json!({"name": TABLE_VARIABLE, "value": text})),
    }
}
