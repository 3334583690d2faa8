//! Locates the filter's wasm file and its sources; the only file of the host that reads the
//! environment.

use std::path::{Path, PathBuf};

/// Environment variable with the path of another wasm file.
const WASM: &str = "APP_HEALTH_BUILD_FILTER";
/// Cargo's variable for another target folder; a relative path is relative to the root of the
/// workspace.
const TARGET: &str = "CARGO_TARGET_DIR";

/// A wasm file, and the files and folders that it is built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterFile {
    /// The filter as the recipe `wasm` builds it.
    pub wasm: PathBuf,
    /// The wasm file must not be older than any of these.
    pub sources: Vec<PathBuf>,
    /// The folder for machine code that was compiled from it.
    pub compiled: PathBuf,
}

impl FilterFile {
    /// Returns the filter of this workspace, according to the environment.
    pub fn from_environment() -> Self {
        let workspace =
            Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the crate lies in tests/");
        let path = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Self::of(workspace, path(TARGET), path(WASM))
    }

    /// Returns the filter of the workspace at that path, with the values of both variables as
    /// arguments.
    pub fn of(workspace: &Path, target: Option<PathBuf>, wasm: Option<PathBuf>) -> Self {
        let target = workspace.join(target.unwrap_or_else(|| "target".into()));
        let built = target.join("wasm32-unknown-unknown/wasm/app_health_filter.wasm");
        let sources = [
            "enum-table/src",
            "filter/src",
            "probe/src",
            "enum-table/Cargo.toml",
            "filter/Cargo.toml",
            "probe/Cargo.toml",
            "Cargo.toml",
            ".cargo/config.toml",
        ];
        Self {
            wasm: wasm.map_or(built, |wasm| workspace.join(wasm)),
            sources: sources.iter().map(|source| workspace.join(source)).collect(),
            compiled: target.join("wasm-host"),
        }
    }
}

#[cfg(test)]
mod tests;
