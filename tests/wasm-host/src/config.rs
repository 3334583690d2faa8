//! Where the filter lies and what it is built from: the only file of the host that reads the environment.

use std::path::{Path, PathBuf};

/// Names another wasm file than the workspace's own.
const WASM: &str = "APP_HEALTH_BUILD_FILTER";
/// Cargo's own variable for another target folder; a relative one is taken from the workspace's root.
const TARGET: &str = "CARGO_TARGET_DIR";

/// A wasm file and the files and folders that it is built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterFile {
    /// The filter as the recipe `wasm` leaves it.
    pub wasm: PathBuf,
    /// What the filter must not be older than.
    pub sources: Vec<PathBuf>,
}

impl FilterFile {
    /// The filter of this workspace, where the environment says that it lies.
    pub fn from_environment() -> Self {
        let workspace =
            Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the crate lies in tests/");
        let path = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Self::of(workspace, path(TARGET), path(WASM))
    }

    /// The filter of the workspace at that path, with the two settings of the environment as arguments.
    pub fn of(workspace: &Path, target: Option<PathBuf>, wasm: Option<PathBuf>) -> Self {
        let built = workspace
            .join(target.unwrap_or_else(|| "target".into()))
            .join("wasm32-unknown-unknown/wasm/app_health_filter.wasm");
        let sources = [
            "filter/src",
            "probe/src",
            "filter/Cargo.toml",
            "probe/Cargo.toml",
            "Cargo.toml",
            ".cargo/config.toml",
        ];
        Self {
            wasm: wasm.map_or(built, |wasm| workspace.join(wasm)),
            sources: sources.iter().map(|source| workspace.join(source)).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
