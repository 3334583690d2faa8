//! Tests that both supported versions of Envoy accept what `app-health-agent bootstrap` prints for
//! its flags.

use app_health_agent::args::{Args, Command};
use app_health_agent::config::{BootstrapConfig, Environment};
use clap::Parser as _;
use envoy_process::config_source::SidecarConfig;
use envoy_process::state_dir;
use kit::envoy::{self, Version, validate};
use kit::example;
use tokio::process::Command as Process;

const PROBERS: &str = r#"{"/app-health/app/livez": {"tcpSocket": {"port": 8080}},
    "/app-health/app/readyz": {"httpGet": {"path": "/a?b=\"${c}\"", "port": 8080, "scheme": "HTTPS",
                               "httpHeaders": [{"name": "X-Quote", "value": "\" ' \\ é"}]}},
    "/app-health/other.app/startupz": {"grpc": {"port": 9000, "service": "shop"}, "timeoutSeconds": 3}}"#;

const FLAGS: [&str; 20] = [
    "",
    "--filter wasm",
    "--stats-address off",
    "--stats-address 127.0.0.1:9090 --probe-address 127.0.0.1:9020",
    "--probe-address [::1]:15020 --stats-address [::1]:15090",
    "--probe-address 0.0.0.0:15020 --stats-address 0.0.0.0:15090",
    "--admin 127.0.0.1:15000",
    "--admin [::1]:19000 --local-address [::1]:19004",
    "--local-address unix:/tmp/app-health-agent.sock",
    "--allow-from 10.0.0.0/8",
    "--allow-from 10.0.0.0/8,127.0.0.1/32,fd00::/8 --allow-from 192.0.2.7/32",
    "--node-ip 192.0.2.1,fd00::1",
    "--node-ip 192.0.2.1 --allow-from node",
    "--filter wasm --node-ip 192.0.2.1,fd00::1 --allow-from node,192.0.2.0/24",
    "--source-bind off",
    "--source-bind on --instance-ip 10.0.0.5,fd00::5",
    "--source-bind auto --instance-ip fd00::5",
    "--inline-filter",
    "--inline-filter --allow-from 10.0.0.0/8 --stats-address off --source-bind off --admin 127.0.0.1:15000",
    "--instance-ip 192.0.2.7 --local-address 127.0.0.1:9004",
];

fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Command {
    let words: Vec<&str> = ["app-health-agent"].into_iter().chain(words).collect();
    Args::try_parse_from(&words).unwrap_or_else(|error| panic!("{words:?}: {error}")).command
}

/// Returns the configuration for these flags, and writes the filter into the state directory.
fn bootstrap<'a>(words: impl Iterator<Item = &'a str>, environment: &Environment) -> SidecarConfig {
    let Command::Bootstrap(args) = parse(["bootstrap"].into_iter().chain(words)) else {
        panic!("another command");
    };
    let config = BootstrapConfig::new(*args, environment).unwrap_or_else(|error| panic!("{error}")).sidecar;
    if let Some(filter) = config.embedded {
        state_dir::write_filter(&config.state_dir, filter).expect("a writable folder");
    }
    config
}

async fn check(version: Version, flags: &str, environment: &Environment) {
    let folder = envoy::folder(&format!("flags-{version:?}"));
    let envoy_version = version.bootstrap().to_string();
    let state_dir = folder.join("state").display().to_string();
    let words = ["--envoy-version", &envoy_version, "--state-dir", &state_dir];
    let config = bootstrap(words.into_iter().chain(flags.split_whitespace()), environment);
    if let Err(error) = validate(version, &folder, &config.bootstrap.render()).await {
        panic!("{flags}, {version:?}: {error}");
    }
}

#[tokio::test]
async fn every_bootstrap_is_valid_for_the_newest_envoy() {
    check(Version::Newest, "", &Environment::default()).await;
    for flags in FLAGS {
        check(Version::Newest, flags, &Environment::from([("ISTIO_KUBE_APP_PROBERS", PROBERS)])).await;
    }
}

#[tokio::test]
async fn every_bootstrap_is_valid_for_the_oldest_envoy() {
    check(Version::Floor, "", &Environment::default()).await;
    for flags in FLAGS {
        check(Version::Floor, flags, &Environment::from([("ISTIO_KUBE_APP_PROBERS", PROBERS)])).await;
    }
}

/// Envoy merges the bootstrap from `--config-yaml` into an existing configuration, as the guide
/// says.
#[tokio::test]
async fn a_bootstrap_merges_into_an_existing_configuration() {
    let folder = envoy::folder("merge");
    let before = folder.join("before.yaml");
    std::fs::write(&before, example::text("existing-envoy/before.yaml")).expect("a writable folder");
    let state_dir = folder.join("state").display().to_string();
    let words = ["--admin", "127.0.0.1:9901", "--state-dir", &state_dir];
    let environment = Environment::from([("ISTIO_KUBE_APP_PROBERS", PROBERS)]);
    let bootstrap = bootstrap(words.into_iter(), &environment).bootstrap.render();
    let output = Process::new(Version::Newest.binary())
        .args(["--mode", "validate", "--config-path"])
        .arg(&before)
        .args(["--config-yaml", &bootstrap])
        .output()
        .await
        .expect("Envoy starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
