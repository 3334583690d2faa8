//! Converts the bootstrap template to JSON, so that the binary links no YAML parser.

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a directory of the workspace");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    if let Err(reason) = template(workspace, &out) {
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
