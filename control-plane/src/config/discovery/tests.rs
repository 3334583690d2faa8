use clap::Parser as _;

use super::*;
use crate::args::{Args, Command};

/// Parses a command line (without the program name) and returns a description of the configuration.
fn read(line: &str) -> Result<String, Failure> {
    let environment = Environment::default();
    let words = std::iter::once("app-health").chain(line.split_whitespace());
    let args = Args::try_parse_from(words).map_err(|error| Failure::Usage(error.to_string()))?;
    match args.command {
        Command::Discovery(args) => {
            DiscoveryConfig::new(*args, &environment).map(|config| format!("{config:?}"))
        }
        Command::Workloads(args) => {
            WorkloadsConfig::new(args).map(|config| format!("{} {}", config.authority, config.path))
        }
        _ => panic!("unexpected command"),
    }
}

/// Each row is a command line and the error that it causes.
#[test]
fn invalid_flags_are_rejected_with_value_and_reason() {
    let here = "--plaintext-listen 127.0.0.1:0 --config-dir mesh";
    let rows = [
        ("--plaintext-listen 127.0.0.1:0", "--config-dir: required with --store redb, got none"),
        (
            "--config-dir mesh",
            "--tls-cert, --tls-key, --client-ca: required by --listen, got none; for plaintext on this machine only, use --plaintext-listen 127.0.0.1:15010",
        ),
        ("--config-dir mesh --tls-cert a --client-ca b", "--tls-key: required by --listen, got none; "),
        (
            "--config-dir mesh --plaintext-listen 127.0.0.1:0 --listen 127.0.0.1:0",
            "--tls-cert, --tls-key, --client-ca: required by --listen",
        ),
        (
            "--config-dir mesh --plaintext-listen 0.0.0.0:15010",
            "--plaintext-listen = 0.0.0.0:15010: is not a loopback address, and plaintext clients are not authenticated; set --insecure to allow it",
        ),
        ("{} --trust-domain a/b", "--trust-domain = \"a/b\": must be a domain name such as cluster.local"),
        (
            "{} --debounce 2s --debounce-max 1s",
            "--debounce = 2s: must not be longer than --debounce-max = 1s",
        ),
        ("{} --heartbeat 500ms", "--heartbeat = 500ms: must be 1s or more"),
        ("{} --accept-rate 0", "invalid value '0' for '--accept-rate <NUMBER>'"),
        ("{} --max-streams 0", "invalid value '0' for '--max-streams <NUMBER>'"),
        (
            "--store kubernetes --kube-qps 0 --plaintext-listen 127.0.0.1:0",
            "invalid value '0' for '--kube-qps <NUMBER>'",
        ),
        ("{} --disconnect-grace 10", "must be like 5s or 500ms"),
        ("{} --peer-address-check maybe", "[possible values: off, warn, require]"),
        ("{} --outbound-listeners localhost", "invalid IP address syntax"),
        (
            "{} --outbound-listeners 224.0.0.1",
            "--outbound-listeners = 224.0.0.1: Envoy cannot listen on this address",
        ),
        ("{} --store etcd", "[possible values: redb, kubernetes]"),
        ("{} --unknown-policy drop", "[possible values: remove, keep]"),
        ("{} --max-streams -1", "unexpected argument '-1'"),
        ("{} --listen localhost:1", "invalid socket address syntax"),
    ];
    for (flags, expected) in rows {
        let error = read(&format!("discovery {}", flags.replace("{}", here))).expect_err(flags);
        assert!(error.to_string().contains(expected), "{flags}: {error}");
        assert_eq!(error.code(), 64, "{flags}");
    }
}

#[test]
fn workloads_flags_become_address_and_path() {
    let rows = [
        ("", Ok("127.0.0.1:15014 /debug/workloads")),
        (
            "--url http://[::1]:9/ -n shop --state True",
            Ok("[::1]:9 /debug/workloads?namespace=shop&state=True"),
        ),
        ("--url http://discovery --group pay", Ok("discovery:80 /debug/workloads?group=pay")),
        (
            "--url https://discovery",
            Err("--url = \"https://discovery\": must be like http://127.0.0.1:15014"),
        ),
        ("--url http://", Err("--url = \"http://\": must be like")),
        ("--url http://a/b", Err("--url = \"http://a/b\": must be like")),
        ("--group a&b", Err("--group = \"a&b\": must contain only letters, digits")),
    ];
    for (flags, expected) in rows {
        match (read(&format!("workloads {flags}")), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{flags}"),
            (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{flags}: {error}"),
            (found, _) => panic!("{flags}: {found:?}"),
        }
    }
}

#[test]
fn one_listener_is_required_except_for_check() {
    let secure = "--tls-cert a --tls-key b --client-ca c";
    let rows = [
        (format!("--config-dir mesh {secure}"), "[::]:15012"),
        (format!("--config-dir mesh {secure} --listen 127.0.0.1:7"), "127.0.0.1:7"),
        ("--config-dir mesh --plaintext-listen 0.0.0.0:15010 --insecure".to_owned(), "0.0.0.0:15010"),
        ("--config-dir mesh --check".to_owned(), "listen: None, plaintext_listen: None"),
    ];
    for (flags, expected) in rows {
        let config = read(&format!("discovery {flags}")).expect(expected);
        assert!(config.contains(expected), "{flags}: {config}");
    }
}
