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
fn an_empty_twin_counts_as_absent() {
    let twins = |environment: &Environment| -> BTreeSet<String> {
        let command = environment.without_empty_twins(Args::command());
        let flags = command.get_subcommands().flat_map(|command| command.get_arguments());
        flags.filter_map(|flag| flag.get_env()).map(|twin| twin.to_str().unwrap().to_owned()).collect()
    };
    let all = twins(&Environment::default());
    assert!(all.len() > 25, "{all:?}");
    let empty = Environment(all.iter().map(|twin| (twin.into(), OsString::new())).collect());
    assert_eq!(twins(&empty), BTreeSet::new());
    assert_eq!(empty.unknown_twins(), None, "it is known all the same");
    let some = Environment::from([("APP_HEALTH_ADMIN", ""), ("APP_HEALTH_STATE_DIR", "/s")]);
    let hidden: Vec<String> = all.difference(&twins(&some)).cloned().collect();
    assert_eq!(hidden, ["APP_HEALTH_ADMIN"]);
}

#[test]
fn a_command_line_is_parsed_and_its_errors_name_the_command() {
    let args = |words: &[&str]| Environment::default().args(words.iter().map(OsString::from));
    let parsed = args(&["app-health-agent", "run", "--no-envoy"]).unwrap();
    assert!(matches!(parsed.command, Command::Run(RunArgs { no_envoy: true, .. })), "{parsed:?}");
    let error = args(&["app-health-agent", "run", "--admn", "x"]).unwrap_err().to_string();
    assert!(error.contains("'--admin'"), "{error}");
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
    let data_path: HttpUrl = "http://127.0.0.1:15020/app-health/~/readyz".parse().unwrap();
    let found = run("--no-envoy").unwrap().data_path.unwrap();
    assert_eq!((found.endpoint, found.path), (data_path.endpoint, data_path.path));
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
