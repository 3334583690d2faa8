//! Tests of the workspace's own rules: the dependencies between crates, the layout of sources, and the
//! links and recipe names in documents, the Helm chart, alerts and dashboards, and versions.

mod chart;
mod dependencies;
mod documents;
mod envoy_examples;
mod handler_kinds;
mod metrics;
mod module_cycles;
mod module_imports;
mod monitoring;
mod sources;
mod version;

use std::path::{Path, PathBuf};

/// Returns the root of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the crate is in tests/").to_path_buf()
}

/// Returns the files below `folder` with this ending, except those in `target` and hidden
/// directories.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if entry.is_dir() && !name.starts_with('.') && name != "target" {
            found.extend(files(&entry, ending));
        } else if name.ends_with(ending) {
            found.push(entry);
        }
    }
    found
}
