//! The version of the workspace, and the versions that it is tested with, are the same everywhere.

use std::path::Path;

use serving::version::{TESTED_ENVOY, TESTED_KUBERNETES};

use crate::{files, root};

/// What precedes the version of the project in manifests and documents.
const BEFORE: [&str; 3] = ["app-health:", "app-health-control-plane:", "newTag: "];

fn text(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Returns the value of a variable of `justw` or of the Justfile.
fn variable(text: &str, assignment: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(assignment));
    line.unwrap_or_else(|| panic!("no line starts with {assignment}")).trim_matches('"').to_owned()
}

#[test]
fn programs_name_the_tested_versions() {
    let justw = text("justw");
    let envoy = ["envoy_version=", "envoy_floor="].map(|assignment| variable(&justw, assignment));
    assert_eq!(TESTED_ENVOY.map(str::to_owned), envoy, "serving/src/version.rs and justw");
    let kubernetes = variable(&text("Justfile"), "kubernetes_version := ");
    assert_eq!(TESTED_KUBERNETES, [kubernetes.as_str()], "serving/src/version.rs and Justfile");
}

/// `./justw set-version` changes all of them. The page about upgrades also names the next patch version.
#[test]
fn manifests_and_documents_name_this_version() {
    let mut found = 0;
    let (minor, patch) = env!("CARGO_PKG_VERSION").rsplit_once('.').expect("three numbers");
    let next = format!("{minor}.{}", patch.parse::<u32>().expect("a number") + 1);
    let upgrades = root().join("docs/kubernetes.md");
    for file in [".md", ".yaml", ".yml"].into_iter().flat_map(|ending| files(&root(), ending)) {
        if file.ends_with("CHANGELOG.md") {
            continue;
        }
        let text = std::fs::read_to_string(&file).expect("a file");
        for version in BEFORE.into_iter().flat_map(|before| versions(&text, before)) {
            let is_next = version == next && file == upgrades;
            assert!(version == env!("CARGO_PKG_VERSION") || is_next, "{}: {version}", relative(&file));
            found += 1;
        }
    }
    assert!(found > 5, "{found} places name the version");
}

fn relative(file: &Path) -> String {
    file.strip_prefix(root()).unwrap_or(file).display().to_string()
}

/// Returns the versions, such as `0.1.0`, that follow `before` in `text`.
fn versions<'a>(text: &'a str, before: &str) -> Vec<&'a str> {
    let version = |rest: &'a str| {
        let end = rest.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(rest.len());
        rest[..end].trim_end_matches('.')
    };
    text.split(before).skip(1).map(version).filter(|version| version.split('.').count() == 3).collect()
}

#[test]
fn versions_are_found() {
    assert_eq!(versions("tag app-health:0.1.0. And app-health:2.0.10", "app-health:"), ["0.1.0", "2.0.10"]);
    assert_eq!(versions("app-health:latest app-health:1.2", "app-health:"), [""; 0]);
}
