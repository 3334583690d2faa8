//! Tests of the workspace's own rules: dependencies between crates, the layout of modules, and
//! links and recipe names in the documents.

use std::path::{Path, PathBuf};
use std::process::Command;

use kit::envoy::workspace;

/// Returns the names of the crates that a package links, including itself.
fn tree(package: &str) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--locked",
            "--offline",
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--package",
            package,
        ])
        .current_dir(workspace())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    lines.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

/// Returns the files below `folder` with this ending, except those in `target` and hidden
/// directories.
pub(crate) fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
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

#[test]
fn the_arrows_point_one_way() {
    let probe = tree("probe");
    let direct = ["serde", "serde_json", "thiserror"];
    let manifest = std::fs::read_to_string(workspace().join("probe/Cargo.toml")).expect("a manifest");
    let dependencies = manifest.split("[dependencies]").nth(1).and_then(|rest| rest.split('[').next());
    let named: Vec<&str> = dependencies
        .expect("dependencies")
        .lines()
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| !name.is_empty())
        .collect();
    assert_eq!(named, direct);
    assert!(!probe.iter().any(|name| matches!(name.as_str(), "filter" | "agent" | "tests")));
    let filter = tree("filter");
    assert!(!filter.iter().any(|name| matches!(name.as_str(), "agent" | "tests" | "tokio" | "proxy-wasm")));
    let agent = tree("agent");
    assert!(!agent.iter().any(|name| matches!(name.as_str(), "filter" | "tests" | "control-plane")));
    let control_plane = tree("control-plane");
    assert!(!control_plane.iter().any(|name| matches!(name.as_str(), "filter" | "agent" | "tests" | "ring")));
}

#[test]
fn modules_are_files_of_their_name() {
    let misnamed: Vec<PathBuf> =
        files(&workspace(), ".rs").into_iter().filter(|path| path.ends_with("mod.rs")).collect();
    assert_eq!(misnamed, Vec::<PathBuf>::new());
}

#[test]
fn the_environment_is_read_in_one_file_of_each_binary() {
    let reads = |path: &PathBuf| std::fs::read_to_string(path).expect("a source").contains("std::env");
    for folder in ["probe/src", "filter/src", "agent/src", "control-plane/src"] {
        let readers: Vec<PathBuf> =
            files(&workspace().join(folder), ".rs").into_iter().filter(reads).collect();
        let allowed = |path: &PathBuf| {
            let config = ["agent/src/config.rs", "control-plane/src/config.rs"];
            config.iter().any(|file| path.ends_with(file)) || path.ends_with("tests.rs")
        };
        assert!(readers.iter().all(allowed), "{readers:?}");
    }
}

/// Every `./justw NAME` in a document names a recipe, and every file that a document links to
/// exists.
#[test]
fn documents_name_what_is_there() {
    let justfile = std::fs::read_to_string(workspace().join("Justfile")).expect("a Justfile");
    let is_recipe = |name: &str| {
        justfile.lines().any(|line| {
            line.strip_prefix(name).is_some_and(|rest| rest.starts_with([':', ' ']) && rest.contains(':'))
        })
    };
    for document in files(&workspace(), ".md") {
        let text = std::fs::read_to_string(&document).expect("a document");
        for rest in text.split("./justw ").skip(1) {
            let name: String =
                rest.chars().take_while(|char| char.is_ascii_lowercase() || *char == '-').collect();
            assert!(name.is_empty() || is_recipe(&name), "{}: ./justw {name}", document.display());
        }
        for rest in text.split("](").skip(1) {
            let link = rest.split([')', '#']).next().unwrap_or_default();
            let folder = document.parent().expect("a folder");
            let found = link.is_empty() || link.contains("://") || folder.join(link).exists();
            assert!(found, "{}: {link}", document.display());
        }
    }
}
