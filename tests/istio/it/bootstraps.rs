//! The bootstrap that Istio's agent renders, and ours, for the same environment, files and annotations.

mod generated;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use istio_bootstrap::node::{Node, Sources};
use istio_bootstrap::parameters;
use istio_bootstrap::proxy_config::ProxyConfig;
use kit::envoy;
use kit::vm::certificates::Authority;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use serde_json::Value;

use crate::istio;
use generated::Case;

/// Cases of a run, and the variables that set another number and the first seed.
const CASES: u64 = 200;
const CASES_VARIABLE: &str = "APP_HEALTH_BOOTSTRAPS";
const SEED_VARIABLE: &str = "APP_HEALTH_SEED";
/// What Istio's agent starts in place of Envoy: it keeps the bootstrap, which the agent deletes.
const ENVOY: &str =
    "#!/bin/sh\nwhile [ $# -gt 0 ]; do [ \"$1\" = -c ] && cp \"$2\" rendered.json; shift; done\n";
const CERTIFICATE: &str = "var/run/secrets/istio/root-cert.pem";
const TEMPLATE: &str = "var/lib/istio/envoy/envoy_bootstrap_tmpl.json";
/// The version of a build without a release.
const VERSION: &str = "unknown";

#[test]
#[ignore = "needs Istio's agent: ./justw test-istio"]
fn bootstraps_are_equal() {
    let number = |name: &str| std::env::var_os(name)?.to_str()?.parse::<u64>().ok();
    let first = number(SEED_VARIABLE).unwrap_or_else(|| fastrand::u64(..1 << 32));
    let count = number(CASES_VARIABLE).unwrap_or(CASES);
    println!("{count} bootstraps from seed {first}");
    let template = std::fs::read_to_string(istio("envoy_bootstrap.json")).expect("a template");
    let folder = envoy::folder("istio-bootstraps");
    prepare(&folder, &template);
    let addresses = machine_addresses();
    for seed in first..first + count {
        let case = Case::new(seed);
        let expected = rendered_by_istio(&folder, &case);
        let found = rendered(&template, &case, &addresses);
        let again = format!("{SEED_VARIABLE}={seed} {CASES_VARIABLE}=1 ./justw test-istio bootstraps");
        let found = found.unwrap_or_else(|error| panic!("{again}\n{case:#?}\nwe refuse it: {error}"));
        let expected =
            expected.unwrap_or_else(|error| panic!("{again}\n{case:#?}\nIstio's agent refuses it: {error}"));
        let differences = differences(Some(&expected), Some(&found), "");
        assert!(differences.is_empty(), "{again}\n{case:#?}\n{}", differences.join("\n"));
    }
    println!("{count} equal");
}

fn prepare(folder: &Path, template: &str) {
    for name in ["etc/istio/pod", "var/lib/istio/envoy", "var/run/secrets/istio"] {
        std::fs::create_dir_all(folder.join(name)).expect("a writable folder");
    }
    std::fs::write(folder.join(CERTIFICATE), Authority::new().pem()).expect("a certificate");
    std::fs::write(folder.join(TEMPLATE), template).expect("a template");
    let envoy = folder.join("envoy");
    std::fs::write(&envoy, ENVOY).expect("a program");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(envoy, mode).expect("an own file");
}

/// The addresses of this machine in the order in which Istio's agent finds them.
fn machine_addresses() -> Vec<String> {
    let is_listed = |flags: InterfaceFlags| {
        flags.contains(InterfaceFlags::IFF_UP) && !flags.contains(InterfaceFlags::IFF_LOOPBACK)
    };
    let mut found: Vec<(String, IpAddr)> = Vec::new();
    for interface in getifaddrs().expect("a list of addresses").filter(|interface| is_listed(interface.flags))
    {
        let address = interface.address.and_then(|address| {
            let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
            v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
        });
        let is_global = |address: &IpAddr| match address {
            IpAddr::V4(address) => !address.is_link_local(),
            IpAddr::V6(address) => !address.is_unicast_link_local(),
        };
        found.extend(address.filter(is_global).map(|address| (interface.interface_name, address)));
    }
    let mut names: Vec<String> = Vec::new();
    for (name, _) in &found {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let of =
        |name: String| found.iter().filter(move |(other, _)| *other == name).map(|(_, ip)| ip.to_string());
    names.into_iter().flat_map(of).collect()
}

fn rendered_by_istio(folder: &Path, case: &Case) -> Result<Value, String> {
    let result = folder.join("rendered.json");
    let _ = std::fs::remove_file(&result);
    let file = |name: &str, content: &Option<BTreeMap<String, String>>| {
        let path = folder.join("etc/istio/pod").join(name);
        match content {
            Some(map) => std::fs::write(path, downward_api(map)).expect("a writable folder"),
            None => drop(std::fs::remove_file(path)),
        }
    };
    file("labels", &case.labels);
    file("annotations", &case.annotations);
    let output = Command::new(istio("pilot-agent"))
        .args(["proxy", "sidecar", "--domain", generated::DOMAIN])
        .current_dir(folder)
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| name == "PATH"))
        .envs(case.environment.iter().cloned())
        .stdin(Stdio::null())
        .output()
        .expect("Istio's agent");
    match std::fs::read(&result) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).expect("a bootstrap is JSON")),
        Err(_) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Lines as kubelet writes them.
fn downward_api(map: &BTreeMap<String, String>) -> String {
    map.iter().map(|(key, value)| format!("{key}={}\n", Value::from(value.as_str()))).collect()
}

fn rendered(template: &str, case: &Case, addresses: &[String]) -> Result<Value, String> {
    let variable = |name: &str| case.environment.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    let mut config = ProxyConfig::default();
    let annotations = case.annotations.clone().unwrap_or_default();
    for layer in [variable("PROXY_CONFIG"), annotations.get("proxy.istio.io/config")].into_iter().flatten() {
        let layer = serde_json::from_str(layer).expect("cases are JSON");
        config.merge(&layer).map_err(|error| error.to_string())?;
    }
    if let Some(limit) = variable("ISTIO_CPU_LIMIT").and_then(|limit| limit.parse().ok()) {
        config.limit_concurrency(limit);
    }
    config.annotate(&annotations).map_err(|error| error.to_string())?;
    let own = variable("INSTANCE_IP").cloned();
    let others = addresses.iter().filter(|address| Some(*address) != own.as_ref()).cloned();
    let sources = Sources {
        environment: case.environment.clone(),
        labels: case.labels.clone(),
        annotations: case.annotations.clone(),
        addresses: own.clone().into_iter().chain(others).collect(),
        istio_version: VERSION.to_owned(),
        domain: generated::DOMAIN.to_owned(),
        outlier_log_path: String::new(),
        only_file_credentials: false,
    };
    let node = Node::new(&sources, &config).map_err(|refused| refused.to_string())?;
    let text =
        parameters::bootstrap(template, &sources, &config, &node).map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| format!("{error}\n{text}"))
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
