//! Reads the WorkloadGroup file and detects changes of its content.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;
use workload_health::{Checked, WorkloadGroup};

/// Size limit of the file in bytes.
const FILE_BYTES: u64 = 1 << 20;
/// Limit of YAML nesting levels.
const DEPTH: usize = 64;

/// A WorkloadGroup file that was valid when it was opened.
#[derive(Debug, Clone)]
pub struct WorkloadGroupFile {
    pub path: PathBuf,
    /// The last valid content.
    pub group: WorkloadGroup,
    /// Result of the last read, to detect changes.
    read: Result<Vec<u8>, String>,
}

impl WorkloadGroupFile {
    /// Reads and parses the file. The error contains all problems in one line.
    pub fn open(path: PathBuf) -> Result<Checked<Self>, String> {
        let content = content(&path)?;
        let Checked { value: group, warnings } = parse(&content)?;
        Ok(Checked { value: Self { path, group, read: Ok(content) }, warnings })
    }

    /// Reads the file again. Returns `None` if it has not changed, and an error if the new content
    /// is invalid; `group` then keeps the last valid content.
    pub fn reload(&mut self) -> Option<Result<Checked<WorkloadGroup>, String>> {
        let read = content(&self.path);
        if read == self.read {
            return None;
        }
        let found = match &read {
            Ok(content) => parse(content),
            Err(error) => Err(error.clone()),
        };
        self.read = read;
        if let Ok(checked) = &found {
            self.group = checked.value.clone();
        }
        Some(found)
    }
}

fn content(path: &Path) -> Result<Vec<u8>, String> {
    let read = || -> io::Result<Vec<u8>> {
        // Opening a FIFO would block.
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::other("not a file"));
        }
        let mut content = Vec::new();
        File::open(path)?.take(FILE_BYTES + 1).read_to_end(&mut content)?;
        Ok(content)
    };
    let content = read().map_err(|error| error.to_string())?;
    if content.len() as u64 > FILE_BYTES { Err("larger than 1 MiB".to_owned()) } else { Ok(content) }
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
