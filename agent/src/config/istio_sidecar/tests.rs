use std::path::PathBuf;
use std::{fs, process};

use super::*;

/// A folder like the root of a Pod's sidecar.
fn pod(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("istio-sidecar-{}-{name}", process::id()));
    let _ = fs::remove_dir_all(&folder);
    for (file, text) in [
        ("var/lib/istio/envoy/envoy_bootstrap_tmpl.json", "{}"),
        ("var/run/secrets/istio/root-cert.pem", ""),
        ("etc/istio/proxy/envoy-rev.json", "{}"),
    ] {
        let file = folder.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    folder
}

fn configured<const N: usize>(folder: &Path, variables: [(&str, &str); N]) -> Result<RunConfig, NotOurs> {
    let config = ("PROXY_CONFIG", "binaryPath: /bin/true\nterminationDrainDuration: 7s");
    let all = [("INSTANCE_IP", "10.0.0.7"), config].into_iter().chain(variables);
    let texts = all.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let contract = Contract::read(&[], texts, folder, || "1.31.0".to_owned())?;
    RunConfig::of_istio(&contract, &Environment::from(variables))
}

/// Returns the shortest and the longest drain in seconds.
fn drain<const N: usize>(folder: &Path, variables: [(&str, &str); N]) -> (u64, u64) {
    let drain = configured(folder, variables).unwrap().drain;
    assert_eq!(drain.scope, DrainScope::Sidecar);
    (drain.minimum.as_secs(), drain.deadline.as_secs())
}

#[test]
fn a_drain_is_as_long_as_istio_says() {
    let folder = pod("drain");
    let on_zero = ("EXIT_ON_ZERO_ACTIVE_CONNECTIONS", "true");
    let minimum = |value| ("MINIMUM_DRAIN_DURATION", value);
    // The minimum belongs to the other way.
    assert_eq!(drain(&folder, [minimum("1m")]), (7, 7));
    assert_eq!(drain(&folder, [("PROXY_CONFIG", "binaryPath: /bin/true")]), (5, 5));
    assert_eq!(drain(&folder, [on_zero]), (5, 3600));
    assert_eq!(drain(&folder, [on_zero, minimum("1m30s")]), (90, 3600));
    assert_eq!(drain(&folder, [on_zero, minimum("48h")]), (3600, 3600));
    let error = configured(&folder, [on_zero, minimum("soon")]).unwrap_err();
    assert!(error.to_string().contains("MINIMUM_DRAIN_DURATION: must be a duration"), "{error}");
}

#[test]
fn kubelet_is_known_by_the_address_of_its_node() {
    let folder = pod("kubelet");
    let clients = |node| {
        let run = configured(&folder, [("HOST_IP", node)]).unwrap();
        format!("{:?}", run.probes.unwrap().clients)
    };
    let known = clients("192.0.2.9");
    assert!(known.contains("192.0.2.9") && known.contains("allowed: []"), "hooks are for all: {known}");
    assert_eq!(clients("node-1"), clients(""), "a name is no address");
}

#[test]
fn metrics_are_for_this_host_only_if_istio_says_so() {
    let folder = pod("metrics");
    for (value, expected) in [("", false), ("false", false), ("true", true)] {
        let run = configured(&folder, [("METRICS_LOCALHOST_ACCESS_ONLY", value)]).unwrap();
        assert_eq!(run.probes.unwrap().istio_metrics, Some(expected), "{value:?}");
    }
}

#[test]
fn the_level_of_the_log_is_that_of_the_default_scope() {
    for (levels, expected) in [
        ("default:debug,ads:info", "debug"),
        ("ads:debug,all:warn", "warn"),
        ("ads:debug", "info"),
        ("error", "error"),
        ("default:none", "error"),
        ("default:loud", "info"),
    ] {
        assert_eq!(log_level(levels), expected, "{levels}");
    }
}
