use clap::Parser;

use super::*;
use crate::args::Command;

fn wait(flags: &str, environment: &Environment) -> WaitConfig {
    let words = ["app-health-agent", "wait"].into_iter().chain(flags.split_whitespace());
    let Command::Wait(args) = Args::try_parse_from(words).unwrap().command else { panic!("wait") };
    WaitConfig::new(args, environment).unwrap()
}

#[test]
fn unknown_twins_are_warned_of() {
    let environment = Environment::from([
        ("APP_HEALTH_PORT", "tcp://10.0.0.1:80"),
        ("APP_HEALTH_ADMIN", "127.0.0.1:15000"),
        ("APP_HEALTHY", "yes"),
        ("APP_HEALTH_ADMN", "x"),
    ]);
    assert_eq!(environment.unknown_twins().as_deref(), Some("APP_HEALTH_ADMN, APP_HEALTH_PORT"));
    assert_eq!(Environment::default().unknown_twins(), None);
}

#[test]
fn run_says_what_to_type_instead() {
    let run = |flags: &str| {
        let words = ["app-health-agent", "run"].into_iter().chain(flags.split_whitespace());
        let Command::Run(args) = Args::try_parse_from(words).unwrap().command else { panic!("run") };
        RunConfig::new(args, &Environment::default())
    };
    let failure = run("").unwrap_err();
    assert!(failure.to_string().contains("app-health-agent run --no-envoy"), "{failure}");
    assert_eq!(failure.code(), 64);
    assert!(run("--no-envoy").unwrap().data_path.is_some());
    assert!(run("--no-envoy --data-path off").unwrap().data_path.is_none());
}

#[test]
fn the_data_path_has_its_path_by_itself() {
    for (url, path) in [("http://127.0.0.1:25020", DATA_PATH), ("http://127.0.0.1:25020/x", "/x")] {
        let words = ["app-health-agent", "run", "--no-envoy", "--data-path", url];
        let Command::Run(args) = Args::try_parse_from(words).unwrap().command else { panic!("run") };
        let config = RunConfig::new(args, &Environment::default()).unwrap();
        assert_eq!(config.data_path.unwrap().path, path, "{url}");
    }
}

#[test]
fn no_sidecar() {
    for (value, expected) in [
        ("", None),
        ("0", None),
        ("false", None),
        ("FALSE", None),
        ("1", Some(NO_SIDECAR)),
        ("yes", Some(NO_SIDECAR)),
    ] {
        assert_eq!(wait("", &Environment::from([("NO_SIDECAR", value)])).no_sidecar, expected, "{value:?}");
    }
    assert_eq!(wait("--no-sidecar", &Environment::default()).no_sidecar, Some("--noSidecar"));
}
