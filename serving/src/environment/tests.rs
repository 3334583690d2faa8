use super::*;

#[derive(Debug, Parser)]
struct Args {
    #[command(subcommand)]
    command: Subcommand,
}

#[derive(Debug, clap::Subcommand)]
enum Subcommand {
    Run {
        #[arg(long, env = "TEST_ADMIN")]
        admin: Option<String>,
        #[arg(long, env = "TEST_STATE_DIR")]
        state_dir: Option<String>,
    },
}

#[test]
fn unknown_variables_are_found_by_their_prefix() {
    let environment = Environment::from([
        ("TEST_PORT", "tcp://10.0.0.1:80"),
        ("TEST_ADMIN", "127.0.0.1:15000"),
        ("TESTED", "yes"),
        ("TEST_ADMN", "x"),
        ("TEST_STATE_DIR", ""),
    ]);
    assert_eq!(environment.unknown_variables::<Args>("TEST_").as_deref(), Some("TEST_ADMN, TEST_PORT"));
    assert_eq!(Environment::default().unknown_variables::<Args>("TEST_"), None);
}

#[test]
fn an_empty_variable_counts_as_absent() {
    let environment = Environment::from([("TEST_ADMIN", ""), ("TEST_STATE_DIR", "/s")]);
    assert_eq!(environment.get("TEST_ADMIN"), None);
    let command = environment.without_empty_variables(Args::command());
    let run = command.find_subcommand("run").unwrap();
    let variables: Vec<_> = run.get_arguments().filter_map(|flag| flag.get_env()).collect();
    assert_eq!(variables, ["TEST_STATE_DIR"]);
}

#[test]
fn a_command_line_is_parsed_and_its_errors_name_the_command() {
    let args = |words: &[&str]| Environment::default().args::<Args>(words.iter().map(OsString::from));
    let Subcommand::Run { admin, state_dir } = args(&["x", "run", "--admin", "a"]).unwrap().command;
    assert_eq!((admin.as_deref(), state_dir), (Some("a"), None));
    let error = args(&["x", "run", "--admn", "x"]).unwrap_err().to_string();
    assert!(error.contains("'--admin'"), "{error}");
}
