//! The bootstrap that Istio's agent renders, and ours, for the same environment, files and annotations.

mod generated;
mod go_quoting;
mod golden;
mod network;
mod yaml;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use istio_agent::contract::Contract;
use kit::vm::certificates::Authority;
use kit::{envoy, not_tested};
use serde_json::Value;

use generated::{Case, OTHER_TEMPLATE};
use istio_tests::istio;
use network::Network;

/// Cases of a run and its first seed, and the variables that set others.
const CASES: u64 = 2_000;
const SEED: u64 = 1;
const CASES_VARIABLE: &str = "APP_HEALTH_BOOTSTRAPS";
const SEED_VARIABLE: &str = "APP_HEALTH_SEED";
/// What Istio's agent starts in place of Envoy: it keeps the bootstrap, which the agent deletes.
const ENVOY: &str = "#!/bin/sh\nprintf '%s\\n' \"$@\" > flags\nwhile [ $# -gt 0 ]; do [ \"$1\" = -c ] && cp \"$2\" rendered.json; shift; done\n";
const CERTIFICATE: &str = "var/run/secrets/istio/root-cert.pem";
const TEMPLATE: &str = "var/lib/istio/envoy/envoy_bootstrap_tmpl.json";
/// The version of Istio's programs, from `istio_flags` in the Justfile.
const VERSION: &str = "1.31.0";

/// Agents run beside each other in networks of their own, as each opens the same ports.
#[test]
#[ignore = "needs Istio's agent and root: ./justw test-istio"]
fn bootstraps_are_equal() {
    if !not_tested::has_root_and("equal bootstraps", &["ip"]) {
        return;
    }
    let number = |name: &str| std::env::var_os(name)?.to_str()?.parse::<u64>().ok();
    let first = number(SEED_VARIABLE).unwrap_or(SEED);
    let count = number(CASES_VARIABLE).unwrap_or(CASES);
    println!("{count} bootstraps from seed {first}");
    let template = std::fs::read_to_string(istio("envoy_bootstrap.json")).expect("a template");
    std::thread::scope(|scope| {
        for network in Network::ALL {
            let (folder, template) = (envoy::folder(&format!("istio-bootstraps-{network:?}")), &template);
            scope.spawn(move || {
                network.enter();
                prepare(&folder, template);
                (first..first + count).filter(|seed| network.is_of(*seed)).for_each(|seed| {
                    compare(&folder, seed);
                });
            });
        }
    });
    println!("{count} equal");
}

fn compare(folder: &Path, seed: u64) {
    let case = Case::new(seed);
    let expected = rendered_by_istio(folder, &case);
    let found = rendered(folder, &case);
    let again = format!("{SEED_VARIABLE}={seed} {CASES_VARIABLE}=1 ./justw test-istio bootstraps");
    let found = found.unwrap_or_else(|error| panic!("{again}\n{case:#?}\nwe refuse it: {error}"));
    let expected =
        expected.unwrap_or_else(|error| panic!("{again}\n{case:#?}\nIstio's agent refuses it: {error}"));
    let differences = differences(Some(&expected.bootstrap), Some(&found.bootstrap), "");
    assert!(differences.is_empty(), "{again}\n{case:#?}\n{}", differences.join("\n"));
    assert_eq!(found.flags, expected.flags, "{again}\n{case:#?}");
    assert_eq!(found.merged, expected.merged, "{again}\n{case:#?}");
}

/// The inputs of Istio's own tests. What only Istio's agent supports is left to it.
#[test]
#[ignore = "needs Istio's agent: ./justw test-istio"]
fn bootstraps_of_istios_own_tests_are_equal() {
    let template = std::fs::read_to_string(istio("envoy_bootstrap.json")).expect("a template");
    let folder = envoy::folder("istio-golden");
    prepare(&folder, &template);
    let mut left_to_istio = Vec::new();
    for (name, case) in golden::cases() {
        let expected = rendered_by_istio(&folder, &case);
        let expected = expected.unwrap_or_else(|error| panic!("{name}: Istio's agent refuses it: {error}"));
        match rendered(&folder, &case) {
            Ok(found) => {
                let differences = differences(Some(&expected.bootstrap), Some(&found.bootstrap), "");
                assert!(differences.is_empty(), "{name}\n{}", differences.join("\n"));
                assert_eq!(found.flags, expected.flags, "{name}");
            }
            Err(reason) => left_to_istio.push((name, reason)),
        }
    }
    let [("tracing_lightstep", reason)] = left_to_istio.as_slice() else { panic!("{left_to_istio:?}") };
    assert!(reason.contains("ightstep"), "{reason}");
}

fn prepare(folder: &Path, template: &str) {
    for name in ["etc/istio/pod", "etc/istio/config", "var/lib/istio/envoy", "var/run/secrets/istio"] {
        std::fs::create_dir_all(folder.join(name)).expect("a writable folder");
    }
    std::fs::write(folder.join(CERTIFICATE), Authority::new().pem()).expect("a certificate");
    std::fs::write(folder.join(TEMPLATE), template).expect("a template");
    let other = template.replacen('{', "{\"other\": \"{{ .nodeID }} {{ .cluster }}\",", 1);
    std::fs::write(folder.join(OTHER_TEMPLATE), other).expect("a template");
    let envoy = folder.join("envoy");
    std::fs::write(&envoy, ENVOY).expect("a program");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(envoy, mode).expect("an own file");
}

/// A bootstrap, and the flags of the Envoy that reads it.
struct Rendered {
    bootstrap: Value,
    flags: BTreeSet<String>,
    /// What Envoy merges into its bootstrap, the value of a flag.
    merged: Value,
}

fn rendered_by_istio(folder: &Path, case: &Case) -> Result<Rendered, String> {
    let result = folder.join("rendered.json");
    let put = |path: PathBuf, content: Option<String>| match content {
        Some(text) => std::fs::write(path, text).expect("a writable folder"),
        None => drop(std::fs::remove_file(path)),
    };
    put(result.clone(), None);
    for (name, map) in [("labels", &case.labels), ("annotations", &case.annotations)] {
        put(folder.join("etc/istio/pod").join(name), map.as_ref().map(downward_api));
    }
    for name in Case::FILES {
        put(folder.join(name), case.files.get(name).cloned());
    }
    let output = Command::new(istio("pilot-agent"))
        .arg("proxy")
        .args(&case.arguments)
        .current_dir(folder)
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| name == "PATH"))
        .envs(case.environment.iter().cloned())
        .stdin(Stdio::null())
        .output()
        .expect("Istio's agent");
    match std::fs::read(&result) {
        Ok(bytes) => {
            let bootstrap = serde_json::from_slice(&bytes).expect("a bootstrap is JSON");
            let words = std::fs::read_to_string(folder.join("flags")).expect("Envoy's flags");
            Ok(Rendered::new(bootstrap, words.lines().map(str::to_owned).collect()))
        }
        Err(_) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Lines as kubelet writes them.
fn downward_api(map: &BTreeMap<String, String>) -> String {
    map.iter().map(|(key, value)| format!("{key}={}\n", go_quoting::quote(value))).collect()
}

/// What we render, and Envoy's flags, for the files that Istio's agent has read.
fn rendered(folder: &Path, case: &Case) -> Result<Rendered, String> {
    let contract = Contract::read(&case.arguments, case.environment.clone(), folder, || VERSION.to_owned());
    let contract = contract.map_err(|error| error.to_string())?;
    let text = match contract.bootstrap {
        Some(text) => text,
        None => std::fs::read_to_string(&contract.bootstrap_file).map_err(|error| error.to_string())?,
    };
    let bootstrap = serde_json::from_str(&text).map_err(|error| format!("{error}\n{text}"))?;
    Ok(Rendered::new(bootstrap, contract.envoy_flags))
}

impl Rendered {
    /// Takes Envoy's flags with their values, whatever their order.
    fn new(bootstrap: Value, words: Vec<String>) -> Self {
        let mut flags: Vec<String> = Vec::new();
        for word in words {
            match flags.last_mut().filter(|_| !word.starts_with('-')) {
                Some(flag) => *flag = format!("{flag} {word}"),
                None => flags.push(word),
            }
        }
        let document = flags.iter().find_map(|flag| flag.strip_prefix("--config-yaml "));
        let merged = document.map(|text| serde_json::from_str(text).expect("JSON")).unwrap_or_default();
        flags.retain(|flag| !flag.starts_with("-c ") && !flag.starts_with("--config-yaml "));
        Self { bootstrap, flags: flags.into_iter().collect(), merged }
    }
}

/// The paths at which two documents differ. `None` is a field that does not exist.
fn differences(expected: Option<&Value>, found: Option<&Value>, path: &str) -> Vec<String> {
    match (expected, found) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let keys: BTreeSet<_> = one.keys().chain(other.keys()).collect();
            let of = |key: &String| differences(one.get(key), other.get(key), &format!("{path}/{key}"));
            keys.into_iter().flat_map(of).collect()
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) if one.len() == other.len() => {
            let of = |index| differences(one.get(index), other.get(index), &format!("{path}/{index}"));
            (0..one.len()).flat_map(of).collect()
        }
        _ if expected == found => Vec::new(),
        _ => vec![format!("{path}\n  Istio's agent: {expected:?}\n  ours:          {found:?}")],
    }
}
