//! Dependencies between the crates of the product point one way, and pure crates do no I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use crate::root;

/// Every crate of the product, with the crates of the product that it depends on.
pub(crate) const ALLOWED: &[(&str, &[&str])] = &[
    ("enum-table", &[]),
    ("pacing", &[]),
    ("printable", &[]),
    ("probe", &["enum-table"]),
    ("filter", &["enum-table", "probe"]),
    ("filter-native", &["filter", "probe"]),
    ("workload-health", &["enum-table", "probe"]),
    ("xds", &[]),
    ("xds-proxy", &["pacing", "workload-health", "xds"]),
    ("istio-bootstrap", &["probe"]),
    (
        "istio-agent",
        &[
            "agent-output",
            "agent-state",
            "istio-bootstrap",
            "istio-certificates",
            "mesh-dns",
            "probe",
            "serving",
            "xds",
            "xds-client",
        ],
    ),
    ("istio-certificates", &["pacing", "xds"]),
    ("mesh-dns", &["xds"]),
    ("injector", &["enum-table", "probe"]),
    ("lint", &["address", "injector", "printable"]),
    ("explain", &["enum-table", "injector", "printable", "probe"]),
    ("discovery", &["pacing", "probe", "workload-health", "xds"]),
    ("serving", &["address", "pacing"]),
    ("address", &[]),
    ("readiness", &["address", "enum-table"]),
    ("envoy-bootstrap", &["address", "enum-table", "probe"]),
    ("http-client", &["address", "probe", "readiness"]),
    ("agent-output", &["printable", "serving"]),
    ("agent-state", &["address", "envoy-bootstrap", "readiness", "serving", "workload-health", "xds-proxy"]),
    ("prober", &["probe"]),
    ("probe-server", &["address", "probe", "prober", "serving"]),
    (
        "envoy-process",
        &[
            "address",
            "agent-output",
            "agent-state",
            "envoy-bootstrap",
            "http-client",
            "pacing",
            "readiness",
            "serving",
        ],
    ),
    ("scrape", &["address", "agent-state", "enum-table", "http-client", "probe", "serving"]),
    (
        "workload-prober",
        &[
            "address",
            "agent-state",
            "enum-table",
            "probe",
            "prober",
            "readiness",
            "serving",
            "workload-health",
        ],
    ),
    (
        "xds-client",
        &[
            "address",
            "agent-output",
            "agent-state",
            "envoy-process",
            "http-client",
            "pacing",
            "readiness",
            "serving",
            "workload-health",
            "workload-prober",
            "xds",
            "xds-proxy",
        ],
    ),
    (
        "agent-server",
        &[
            "address",
            "agent-output",
            "agent-state",
            "envoy-bootstrap",
            "envoy-process",
            "http-client",
            "probe",
            "probe-server",
            "readiness",
            "scrape",
            "serving",
        ],
    ),
    (
        "agent",
        &[
            "address",
            "agent-output",
            "agent-server",
            "agent-state",
            "envoy-bootstrap",
            "envoy-process",
            "http-client",
            "istio-agent",
            "istio-bootstrap",
            "istio-certificates",
            "mesh-dns",
            "probe",
            "probe-server",
            "readiness",
            "scrape",
            "serving",
            "workload-health",
            "workload-prober",
            "xds",
            "xds-client",
            "xds-proxy",
        ],
    ),
    ("discovery-server", &["discovery", "injector", "pacing", "serving", "workload-health"]),
    (
        "control-plane",
        &[
            "address",
            "discovery",
            "discovery-server",
            "explain",
            "injector",
            "lint",
            "pacing",
            "printable",
            "serving",
            "workload-health",
        ],
    ),
];

/// Crates without I/O, clock and randomness. Neither they nor what they depend on may contain a crate of
/// `IMPURE`.
const PURE: &[&str] = &[
    "enum-table",
    "address",
    "envoy-bootstrap",
    "readiness",
    "pacing",
    "printable",
    "probe",
    "filter",
    "workload-health",
    "xds",
    "xds-proxy",
    "injector",
    "lint",
    "explain",
    "discovery",
    "istio-bootstrap",
    "mesh-dns",
];
const IMPURE: [&str; 16] = [
    "fastrand",
    "getrandom",
    "h2",
    "hyper",
    "hyper-util",
    "kube",
    "mio",
    "nix",
    "proxy-wasm",
    "rand",
    "reqwest",
    "rustls",
    "socket2",
    "tokio",
    "tokio-util",
    "tonic",
];
/// The exception: Envoy's messages, which are plain data. The crate also contains clients and servers of gRPC,
/// so that it depends on tonic; it has no feature that leaves them out.
const MESSAGES: &str = "envoy-types";

/// Returns the packages of the workspace, as `cargo metadata` prints them.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    metadata["packages"].as_array().expect("a list of packages").clone()
}

fn text(value: &Value) -> String {
    value.as_str().expect("a string").to_owned()
}

/// Returns the package and the root file of each crate.
pub(crate) fn targets() -> BTreeSet<(String, String)> {
    let of_package = |package: &Value| {
        let targets = package["targets"].as_array().expect("a list of targets").clone();
        let sources = targets.into_iter().filter(|target| target["kind"][0] != "custom-build");
        let name = text(&package["name"]);
        sources.map(move |target| (name.clone(), text(&target["src_path"]))).collect::<Vec<_>>()
    };
    packages().iter().flat_map(of_package).collect()
}

/// Returns the names of the normal dependencies in the manifest of each workspace member, without
/// those of a single target: the filter's wasm form needs `proxy-wasm`.
fn manifests() -> BTreeMap<String, BTreeSet<String>> {
    packages()
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
    for &(name, allowed) in ALLOWED {
        let own: BTreeSet<&str> = manifests[name]
            .iter()
            .map(String::as_str)
            .filter(|dependency| manifests.contains_key(*dependency))
            .collect();
        assert_eq!(own, allowed.iter().copied().collect(), "{name}");
    }
}

/// Returns the crates that this one depends on in a build of its own, but not those behind `MESSAGES`.
fn closure(name: &str) -> BTreeSet<String> {
    let all = tree(name, &[]);
    // Cargo cannot prune what is absent.
    if all.contains(MESSAGES) { tree(name, &["--prune", MESSAGES]) } else { all }
}

fn tree(name: &str, options: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline", "--package", name, "--edges", "normal"])
        .args(["--prefix", "none", "--format", "{p}"])
        .args(options)
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("names of crates");
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn pure_crates_depend_on_no_crate_for_io() {
    for &name in PURE {
        let closure = closure(name);
        assert!(closure.contains(name), "{closure:?}");
        let impure: Vec<&str> = IMPURE.into_iter().filter(|impure| closure.contains(*impure)).collect();
        assert!(
            impure.is_empty(),
            "{name} is pure and depends on {impure:?}: cargo tree -p {name} -e normal -i {}",
            impure.first().unwrap_or(&name)
        );
    }
    assert!(closure("serving").contains("tokio"));
}

/// ARCHITECTURE.md marks the same crates as pure.
#[test]
fn the_architecture_names_the_pure_crates() {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("a page");
    let marked: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("/` | pure: "))
        .map(|(name, _)| name)
        .collect();
    // Its row names the form that is not pure, too.
    assert_eq!(marked, PURE.iter().copied().filter(|name| *name != "filter").collect());
}

/// The filter's size depends on every crate that `probe` brings.
#[test]
fn probe_has_four_dependencies() {
    let direct: Vec<String> = manifests()["probe"].iter().cloned().collect();
    assert_eq!(direct, ["enum-table", "serde", "serde_json", "thiserror"]);
}
