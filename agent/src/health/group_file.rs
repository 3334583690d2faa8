//! The file of a WorkloadGroup: what stands in it, and whether that has changed.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;
use workload_health::{Checked, WorkloadGroup};

/// The largest file.
const FILE_BYTES: u64 = 1 << 20;
/// Levels of nesting.
const DEPTH: usize = 64;

/// A file that was good once.
#[derive(Debug, Clone)]
pub struct GroupFile {
    /// Where it is.
    pub path: PathBuf,
    /// What stood in it when it was good last.
    pub group: WorkloadGroup,
    /// What came of reading it last.
    read: Result<Vec<u8>, String>,
}

impl GroupFile {
    /// Reads it. `Err`: everything that is wrong, in one line.
    pub fn open(path: PathBuf) -> Result<Checked<Self>, String> {
        let content = content(&path)?;
        let Checked { value: group, warnings } = parse(&content)?;
        Ok(Checked { value: Self { path, group, read: Ok(content) }, warnings })
    }

    /// Reads it again. `None`: as before. `Err`: it has changed, and the old group stays.
    pub fn changed(&mut self) -> Option<Result<Checked<WorkloadGroup>, String>> {
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
        // A pipe would hold everything up.
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

/// The one document. YAML as kubectl reads it; a key that stands twice is an error.
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
