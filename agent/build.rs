//! Prepares what the binary embeds: the bootstrap template as JSON, so that the binary links no
//! YAML parser, and the filter.
//!
//! The filter is built separately, because it has another target and another profile. This script
//! reads it from a file and fails if that file is missing or older than its sources, so that no
//! binary embeds a stale filter.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

/// Overrides the path of the filter.
const FILTER_ENV: &str = "APP_HEALTH_BUILD_FILTER";
/// Path of the built filter, relative to the workspace root.
const FILTER_FILE: &str = "target/wasm32-unknown-unknown/wasm/app_health_filter.wasm";
/// Sources of the filter, relative to the workspace root.
const FILTER_SOURCES: [&str; 4] = ["filter/src", "probe/src", "filter/Cargo.toml", "probe/Cargo.toml"];

fn main() {
    let workspace =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("agent/ is a directory of the workspace");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    if let Err(reason) = template(workspace, &out).and_then(|()| filter(workspace, &out)) {
        println!("cargo::error={reason}");
    }
}

fn template(workspace: &Path, out: &Path) -> Result<(), String> {
    let file = workspace.join("envoy-config/bootstrap.yaml");
    println!("cargo::rerun-if-changed={}", file.display());
    let yaml = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let json: serde_json::Value =
        serde_saphyr::from_str(&yaml).map_err(|error| format!("{}: {error}", file.display()))?;
    fs::write(out.join("bootstrap.json"), json.to_string())
        .map_err(|error| format!("bootstrap.json: {error}"))
}

fn filter(workspace: &Path, out: &Path) -> Result<(), String> {
    println!("cargo::rerun-if-env-changed={FILTER_ENV}");
    let file = std::env::var_os(FILTER_ENV).map_or_else(|| workspace.join(FILTER_FILE), PathBuf::from);
    println!("cargo::rerun-if-changed={}", file.display());
    for source in FILTER_SOURCES {
        println!("cargo::rerun-if-changed={}", workspace.join(source).display());
    }

    let recipe = "run `./justw wasm` first";
    let built = modified(&file).map_err(|_| format!("{} is missing: {recipe}", file.display()))?;
    for source in FILTER_SOURCES {
        if let Some(newer) = newer_than(&workspace.join(source), built) {
            return Err(format!("{} is older than {}: {recipe}", file.display(), newer.display()));
        }
    }

    let wasm = fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let digest = Sha256::digest(&wasm);
    let digits: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    println!("cargo::rustc-env=FILTER_FILE_NAME=app_health_filter-{digits}.wasm");
    fs::write(out.join("app_health_filter.wasm"), wasm)
        .map_err(|error| format!("app_health_filter.wasm: {error}"))
}

/// Returns the first file at or below `path` that was modified after `built`. Unit tests do not
/// count, because the filter does not contain them and cargo does not rebuild it for them.
fn newer_than(path: &Path, built: SystemTime) -> Option<PathBuf> {
    if path.is_dir() {
        let mut entries: Vec<PathBuf> =
            fs::read_dir(path).ok()?.flatten().map(|entry| entry.path()).collect();
        entries.sort();
        return entries.iter().find_map(|entry| newer_than(entry, built));
    }
    let is_test = path.file_name().is_some_and(|name| name == "tests.rs");
    (!is_test && modified(path).ok()? > built).then(|| path.to_owned())
}

fn modified(path: &Path) -> std::io::Result<SystemTime> {
    fs::metadata(path)?.modified()
}
