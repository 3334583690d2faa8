//! Files that `./justw bless` writes.

use std::path::Path;

use crate::envoy::workspace;

/// Compares a generated file of the repository with its expected content; with `UPDATE_GOLDEN=1` writes it
/// before.
///
/// # Panics
/// If the file is another one, or cannot be written.
pub fn assert_generated(name: impl AsRef<Path>, expected: &str) {
    let file = workspace().join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, expected).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(found == expected, "{} is outdated: run ./justw bless and review the diff", file.display());
}
