//! Dependencies between the crates of the product point one way, and pure crates do no I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use crate::root;

/// Every crate of the product, with the crates of the product that it may depend on.
const ALLOWED: [(&str, &[&str]); 13] = [
    ("pacing", &[]),
    ("probe", &[]),
    ("filter", &["probe"]),
    ("filter-native", &["filter", "probe"]),
    ("workload-health", &["pacing", "probe"]),
    ("xds-proxy", &["pacing"]),
    ("injector", &["probe"]),
    ("lint", &["injector"]),
    ("explain", &["injector", "probe"]),
    ("discovery", &["pacing", "probe", "workload-health"]),
    ("serving", &["pacing"]),
    ("agent", &["pacing", "probe", "serving", "workload-health", "xds-proxy"]),
    (
        "control-plane",
        &["discovery", "explain", "injector", "lint", "pacing", "probe", "serving", "workload-health"],
    ),
];

/// Crates whose manifests name no crate for I/O.
const PURE: [&str; 9] =
    ["pacing", "probe", "filter", "workload-health", "xds-proxy", "injector", "lint", "explain", "discovery"];
const IO: [&str; 9] =
    ["hyper", "hyper-util", "kube", "nix", "proxy-wasm", "socket2", "tokio", "tokio-util", "tonic"];

/// Returns the names of the normal dependencies in the manifest of each workspace member, without
/// those of a single target: the filter's wasm form needs `proxy-wasm`.
fn manifests() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let text = |value: &Value| value.as_str().expect("a string").to_owned();
    let packages = metadata["packages"].as_array().expect("a list of packages");
    packages
        .iter()
        .map(|package| {
            let dependencies = package["dependencies"].as_array().expect("a list of dependencies");
            let normal = dependencies
                .iter()
                .filter(|dependency| dependency["kind"].is_null() && dependency["target"].is_null());
            (text(&package["name"]), normal.map(|dependency| text(&dependency["name"])).collect())
        })
        .collect()
}

#[test]
fn dependencies_between_crates_point_one_way() {
    let manifests = manifests();
    for (name, allowed) in ALLOWED {
        let own: Vec<&str> = manifests[name]
            .iter()
            .map(String::as_str)
            .filter(|dependency| manifests.contains_key(*dependency))
            .collect();
        assert!(own.iter().all(|dependency| allowed.contains(dependency)), "{name}: {own:?}");
    }
}

#[test]
fn pure_crates_name_no_crate_for_io() {
    let manifests = manifests();
    for name in PURE {
        let io: Vec<&String> =
            manifests[name].iter().filter(|dependency| IO.contains(&dependency.as_str())).collect();
        assert!(io.is_empty(), "{name}: {io:?}");
    }
}

/// The filter's size depends on every crate that `probe` brings.
#[test]
fn probe_has_three_dependencies() {
    let direct: Vec<String> = manifests()["probe"].iter().cloned().collect();
    assert_eq!(direct, ["serde", "serde_json", "thiserror"]);
}
