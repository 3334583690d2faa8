//! Rewrites the probes of a Pod. All changes are planned first and then applied together, or none
//! if the table of probes cannot be written.

mod change;
mod handler;
mod original_probes;
mod plan;
mod prober_env;
mod summary;
mod timeouts;

use serde_json::{Value, json};

use crate::PROBERS_ENV;
use crate::container::Container;
use crate::pod;
use crate::warning::{Code, Warning, quote};
use original_probes::OriginalProbes;
use plan::Sidecar;
use prober_env::ProberEntries;
pub use summary::{ProbeResult, ProbeSummary};
pub(super) use timeouts::raise_timeouts;

#[derive(Debug, Default)]
pub(super) struct RewriteResult {
    /// The value of the sidecar's environment variable, if it is set.
    pub table: Option<String>,
    /// Every probe or hook that uses the network.
    pub probes: Vec<ProbeSummary>,
    /// One warning for each probe that was not rewritten.
    pub warnings: Vec<Warning>,
}

/// Rewrites the Pod's probes to `status_port`. `name` is the sidecar's name, which is unique in the
/// Pod.
pub(super) fn rewrite(pod: &mut Value, name: &str, status_port: u16) -> RewriteResult {
    let containers = Container::all(&pod["spec"], |container| pod::name(container) == name);
    let Some(sidecar) = Sidecar::find(&containers) else { return RewriteResult::default() };
    let failed = |text: String, code| {
        let warnings = vec![Warning::about_field(code, name, "env", format!("{PROBERS_ENV}: {text}"))];
        RewriteResult { warnings, ..RewriteResult::default() }
    };
    let before = match probers_env(&pod["spec"][sidecar.list][sidecar.index]) {
        Ok(before) => before.map(str::to_owned),
        Err(text) => return failed(text, Code::Table),
    };
    let entries = match ProberEntries::read(before.as_deref().unwrap_or_default(), status_port) {
        Ok(entries) => entries,
        Err(text) => return failed(text, Code::Table),
    };
    let mut originals = OriginalProbes::read(pod);
    let plan = plan::plan(&containers, &sidecar, status_port, &entries, &originals);
    let mut after = entries.clone();
    for change in &plan.changes {
        if let Some((key, entry)) = &change.entry {
            after.insert(key.clone(), entry.clone());
        }
    }
    let text = if after == entries { before.clone() } else { Some(after.text()) };
    if text.as_ref().is_some_and(|text| text.len() > prober_env::MAX_BYTES) {
        return failed(format!("more than {} KiB", prober_env::MAX_BYTES >> 10), Code::TableSize);
    }
    for change in plan.changes {
        change.apply(&mut pod["spec"], status_port, &mut originals);
    }
    originals.write(pod);
    if let Some(text) = text.as_ref().filter(|_| text != before) {
        set_probers_env(&mut pod["spec"][sidecar.list][sidecar.index], text);
    }
    RewriteResult { table: text, probes: plan.probes, warnings: plan.warnings }
}

/// Returns the value of the environment variable, `None` if it is absent. If it is set twice, the
/// last one counts. `valueFrom` is an error.
fn probers_env(sidecar: &Value) -> Result<Option<&str>, String> {
    let Some(env) = pod::field(sidecar, "env") else { return Ok(None) };
    let Some(env) = env.as_array() else { return Err("env must be a list".to_owned()) };
    let Some(entry) = env.iter().rev().find(|entry| pod::name(entry) == PROBERS_ENV) else {
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

fn set_probers_env(sidecar: &mut Value, text: &str) {
    let env = pod::list_mut(sidecar, "env");
    match env.iter_mut().rev().find(|entry| pod::name(entry) == PROBERS_ENV) {
        Some(entry) => entry["value"] = text.into(),
        None => env.push(json!({"name": PROBERS_ENV, "value": text})),
    }
}
