//! Reads the WorkloadGroup file.

use std::path::{Path, PathBuf};

use serde_json::Value;
use serving::files;
use serving::watched::Watched;
use workload_health::{Checked, WorkloadGroup};

/// Limit of YAML nesting levels.
const DEPTH: usize = 64;

/// A WorkloadGroup file that was valid when it was opened.
#[derive(Debug, Clone)]
pub struct WorkloadGroupFile {
    pub path: PathBuf,
    pub group: WorkloadGroup,
    content: Vec<u8>,
}

impl WorkloadGroupFile {
    /// Reads and parses the file. The error contains all problems in one line.
    pub fn open(path: PathBuf) -> Result<Checked<Self>, String> {
        let content = read(&path)?;
        let Checked { value: group, warnings } = parse(&content)?;
        Ok(Checked { value: Self { path, group, content }, warnings })
    }

    /// Returns the later versions of the group.
    pub fn watch(self) -> Watched<Checked<WorkloadGroup>> {
        let Self { path, content, .. } = self;
        Watched::new(content, move || read(&path), |content: &Vec<u8>| parse(content))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    files::read(path).map_err(|error| error.to_string())
}

/// Parses the single YAML document by kubectl's rules; duplicate keys are an error.
fn parse(content: &[u8]) -> Result<Checked<WorkloadGroup>, String> {
    let text = std::str::from_utf8(content).map_err(|error| format!("not UTF-8: {error}"))?;
    let budget = serde_saphyr::budget! { max_depth: DEPTH, flow_nesting_limit: DEPTH };
    let options = serde_saphyr::options! {
        budget: budget,
        legacy_octal_numbers: true,
        emit_comments: false,
        with_snippet: false,
    };
    let documents: Vec<Value> =
        serde_saphyr::from_str_multiple_with_options(text, options).map_err(|error| {
            let place = error.location().map_or((1, 1), |location| (location.line(), location.column()));
            let words = error.without_snippet().to_string();
            let line = words.lines().next().unwrap_or_default();
            let reason = line.split(" at line ").next().unwrap_or(line);
            let reason = reason.split(", set DuplicateKeyPolicy").next().unwrap_or(reason);
            format!("{}:{}: {}", place.0, place.1, reason.trim_start_matches("error: "))
        })?;
    match documents.as_slice() {
        [document] => WorkloadGroup::parse(document).map_err(|errors| errors.join("; ")),
        documents => Err(format!("expected one document, found {}", documents.len())),
    }
}

#[cfg(test)]
mod tests;
