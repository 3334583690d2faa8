//! Embeds both forms of the filter, compressed.
//!
//! The forms are built separately, because they have other targets and profiles. This script reads
//! them from files and fails if a file is missing or older than its sources, so that no binary embeds
//! a stale filter.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use miniz_oxide::deflate;
use sha2::{Digest, Sha256};

/// The slowest level, which needs some hundred milliseconds.
const LEVEL: u8 = 10;

/// A form of the filter that the binary embeds.
struct Form {
    /// Overrides the path of the file.
    env: &'static str,
    /// Path of the built file, relative to the workspace root.
    file: &'static str,
    /// Sources, relative to the workspace root.
    sources: &'static [&'static str],
    recipe: &'static str,
    /// Names the embedded file, and the variable with the name under which it is written.
    name: &'static str,
    extension: &'static str,
}

const FORMS: [Form; 2] = [
    Form {
        env: "APP_HEALTH_BUILD_FILTER",
        file: "target/wasm32-unknown-unknown/wasm/app_health_filter.wasm",
        sources: &[
            "enum-table/src",
            "filter/src",
            "probe/src",
            "enum-table/Cargo.toml",
            "filter/Cargo.toml",
            "probe/Cargo.toml",
        ],
        recipe: "run `./justw wasm` first",
        name: "WASM_FILE_NAME",
        extension: "wasm",
    },
    Form {
        env: "APP_HEALTH_BUILD_MODULE",
        file: "target/release/libapp_health_filter_native.so",
        sources: &[
            "enum-table/src",
            "filter/src",
            "filter-native/build.rs",
            "filter-native/src",
            "probe/src",
            "enum-table/Cargo.toml",
            "filter/Cargo.toml",
            "filter-native/Cargo.toml",
            "probe/Cargo.toml",
        ],
        recipe: "run `./justw module` first",
        name: "MODULE_FILE_NAME",
        extension: "so",
    },
];

fn main() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a directory of the workspace");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    if let Err(reason) = FORMS.iter().try_for_each(|form| embed(form, workspace, &out)) {
        println!("cargo::error={reason}");
    }
}

fn embed(form: &Form, workspace: &Path, out: &Path) -> Result<(), String> {
    let Form { env, file, sources, recipe, name, extension } = form;
    println!("cargo::rerun-if-env-changed={env}");
    let file = std::env::var_os(env).map_or_else(|| workspace.join(file), PathBuf::from);
    println!("cargo::rerun-if-changed={}", file.display());
    for source in *sources {
        println!("cargo::rerun-if-changed={}", workspace.join(source).display());
    }

    let built = modified(&file).map_err(|_| format!("{} is missing: {recipe}", file.display()))?;
    for source in *sources {
        if let Some(newer) = newer_than(&workspace.join(source), built) {
            return Err(format!("{} is older than {}: {recipe}", file.display(), newer.display()));
        }
    }

    let bytes = fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    check_machine(&bytes).map_err(|error| format!("{}: {error}; set {env}", file.display()))?;
    let digits: String = Sha256::digest(&bytes).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    println!("cargo::rustc-env={name}=app_health_filter-{digits}.{extension}");
    let embedded = format!("app_health_filter.{extension}.deflate");
    fs::write(out.join(&embedded), deflate::compress_to_vec(&bytes, LEVEL))
        .map_err(|error| format!("{embedded}: {error}"))
}

/// Checks that an ELF file is for the machine that this binary is built for.
fn check_machine(bytes: &[u8]) -> Result<(), String> {
    let target = std::env::var_os("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    // `e_machine` of the ELF header.
    let machine = match (bytes.get(..4), bytes.get(18..20)) {
        (Some(b"\x7fELF"), Some([0x3e, 0])) => "x86_64",
        (Some(b"\x7fELF"), Some([0xb7, 0])) => "aarch64",
        (Some(b"\x7fELF"), _) => "another architecture",
        _ => return Ok(()),
    };
    if machine == target { Ok(()) } else { Err(format!("it is for {machine}, not for {target:?}")) }
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
