use super::*;
use crate::args::Command;

#[test]
fn unknown_flag_variables_are_reported() {
    let environment = Environment::from([
        ("APP_HEALTH_PORT", "tcp://10.0.0.1:80"),
        ("APP_HEALTH_ADMIN", "127.0.0.1:15000"),
        ("APP_HEALTHY", "yes"),
        ("APP_HEALTH_ADMN", "x"),
    ]);
    assert_eq!(environment.unknown_flag_variables().as_deref(), Some("APP_HEALTH_ADMN, APP_HEALTH_PORT"));
    assert_eq!(Environment::default().unknown_flag_variables(), None);
}

#[test]
fn an_empty_variable_counts_as_absent() {
    let variables = |environment: &Environment| -> BTreeSet<String> {
        let command = environment.without_empty_variables(Args::command());
        let flags = command.get_subcommands().flat_map(|command| command.get_arguments());
        flags
            .filter_map(|flag| flag.get_env())
            .map(|variable| variable.to_str().unwrap().to_owned())
            .collect()
    };
    let all = variables(&Environment::default());
    assert!(all.len() > 25, "{all:?}");
    let empty = Environment(all.iter().map(|variable| (variable.into(), OsString::new())).collect());
    assert_eq!(variables(&empty), BTreeSet::new());
    assert_eq!(empty.unknown_flag_variables(), None, "an empty variable is still a known one");
    let some = Environment::from([("APP_HEALTH_ADMIN", ""), ("APP_HEALTH_STATE_DIR", "/s")]);
    let hidden: Vec<String> = all.difference(&variables(&some)).cloned().collect();
    assert_eq!(hidden, ["APP_HEALTH_ADMIN"]);
}

#[test]
fn a_command_line_is_parsed_and_its_errors_name_the_command() {
    let args = |words: &[&str]| Environment::default().args(words.iter().map(OsString::from));
    let parsed = args(&["app-health-agent", "run", "--no-envoy"]).unwrap();
    assert!(matches!(&parsed.command, Command::Run(run) if run.no_envoy), "{parsed:?}");
    let error = args(&["app-health-agent", "run", "--admn", "x"]).unwrap_err().to_string();
    assert!(error.contains("'--admin'"), "{error}");
}
