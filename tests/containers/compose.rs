//! Tests of the compose files: their flags and volumes without a daemon, and their behavior with
//! one.

use std::cell::Cell;
use std::net::SocketAddr;
use std::path::PathBuf;

use app_health_agent::args::{Args, Command};
use app_health_agent::config::{BootstrapConfig, Environment};
use clap::Parser as _;
use kit::caller;
use kit::docker::Daemon;
use kit::envoy::workspace;
use kit::example;
use kit::not_tested;
use kit::wait;
use serde_json::Value;

const STATE_DIR: &str = "/var/run/app-health/state";

fn file(name: &str) -> PathBuf {
    workspace().join("envoy-config/compose").join(name)
}

fn services(name: &str) -> Value {
    example::parse(&std::fs::read_to_string(file(name)).expect("the file exists"))["services"].take()
}

fn words(list: &Value) -> Vec<String> {
    let list = list.as_array().expect("a list").iter();
    list.map(|word| word.as_str().expect("a word").to_owned()).collect()
}

fn parse(words: &[String]) -> Command {
    let line = ["app-health-agent".to_owned()].into_iter().chain(words.iter().cloned());
    Args::try_parse_from(line).unwrap_or_else(|error| panic!("{words:?}: {error}")).command
}

/// Parses the service's prober table with these flags of `bootstrap`, and asserts that parsing
/// gives no warning.
fn accepted(service: &Value, flags: &[String]) -> BootstrapConfig {
    let Command::Bootstrap(args) = parse(flags) else { panic!("{flags:?}") };
    let table = service["environment"]["ISTIO_KUBE_APP_PROBERS"].as_str().expect("text");
    let environment = Environment::from([("ISTIO_KUBE_APP_PROBERS", table)]);
    let config = BootstrapConfig::new(*args, &environment).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(config.sidecar.warnings, Vec::<String>::new());
    config
}

#[test]
fn compose_files_use_existing_commands() {
    let services = services("compose.yaml");
    let sidecar = &services["sidecar"];
    accepted(sidecar, &["bootstrap".to_owned()]);
    let check = words(&sidecar["healthcheck"]["test"]);
    assert!(matches!(parse(&check[2..]), Command::Wait(_)), "{check:?}");
}

#[test]
fn envoy_and_agent_in_separate_containers_share_files() {
    let services = services("envoy-apart.yaml");
    let bootstrap = &services["bootstrap"];
    let flags = [words(&bootstrap["command"]), vec!["--state-dir".to_owned(), STATE_DIR.to_owned()]].concat();
    let config = accepted(bootstrap, &flags);
    let output = config.output.expect("a file").display().to_string();
    assert_eq!(output, format!("{STATE_DIR}/envoy.json"));
    assert_eq!(words(&services["envoy"]["command"])[..2], ["--config-path".to_owned(), output]);

    let command = words(&services["agent"]["command"]);
    let Command::Run(run) = parse(&command) else { panic!("{command:?}") };
    assert!(run.no_envoy);
    assert_eq!(run.sidecar.admin, Some(config.sidecar.bootstrap.admin), "the same socket");
    let check = words(&services["agent"]["healthcheck"]["test"]);
    assert!(matches!(parse(&check[2..]), Command::Wait(_)), "{check:?}");
    let volumes = format!("state:{}", STATE_DIR.trim_end_matches("/state"));
    for service in ["bootstrap", "envoy", "agent"] {
        assert_eq!(words(&services[service]["volumes"]), std::slice::from_ref(&volumes), "{service}");
        assert_eq!(services[service]["network_mode"], "service:pod", "{service}");
    }
}

/// Checks what the README of the compose files promises. The files run one after the other, because
/// they publish the same ports.
pub(crate) async fn both_files(daemon: &Daemon) {
    if !daemon.has_compose() {
        return not_tested::report("the compose files", "needs docker-compose");
    }
    for (name, proxy) in [("compose.yaml", "sidecar"), ("envoy-apart.yaml", "envoy")] {
        let file = file(name);
        daemon.compose(&file, &["up", "--detach", "--no-build"]);
        // The application starts only after the proxy is ready.
        answers(15021, "/healthz/ready", 200).await;
        answers(15020, "/app-health/app/readyz", 200).await;
        answers(15020, "/app-health/app/livez", 200).await;
        daemon.compose(&file, &["exec", "-T", "app", "rm", "/tmp/www/ready"]);
        answers(15020, "/app-health/app/readyz", 404).await;
        daemon.compose(&file, &["stop", "app"]);
        answers(15020, "/app-health/app/livez", 502).await;
        let merged = answers(15020, "/stats/prometheus", 200).await;
        assert!(merged.contains("app_health_probes_total") && merged.contains("app_health_agent_ready 1"));
        if proxy == "envoy" {
            daemon.compose(&file, &["stop", "envoy"]);
            assert_eq!(answers(15021, "/healthz/ready", 503).await.trim(), "envoy exited");
            daemon.compose(&file, &["start", "envoy"]);
        } else {
            daemon.compose(&file, &["exec", "-T", "sidecar", "app-health-agent", "drain"]);
            assert_eq!(answers(15021, "/healthz/ready", 503).await.trim(), "draining");
            answers(15020, "/app-health/app/livez", 502).await;
            daemon.compose(&file, &["restart", "sidecar"]);
        }
        answers(15021, "/healthz/ready", 200).await;
        answers(15020, "/app-health/app/livez", 502).await;
        daemon.compose(&file, &["down", "--volumes"]);
    }
}

/// Requests `path` from the published port until the response has this status, and returns its
/// body.
async fn answers(port: u16, path: &str, status: u16) -> String {
    let last = Cell::new(0);
    let what = || format!("{path} on port {port} answers {status}, not {}", last.get());
    wait::until_some(what, async || {
        let answer = caller::get(SocketAddr::from(([127, 0, 0, 1], port)), path, &[]).await;
        last.set(answer.status);
        (answer.status == status).then(|| answer.text())
    })
    .await
}
