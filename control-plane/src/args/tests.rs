use super::*;

#[test]
fn durations_require_a_unit() {
    assert_eq!(duration("5s"), Ok(Duration::from_secs(5)));
    assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
    for wrong in ["5", "s", "-1s", "5m", ""] {
        duration(wrong).expect_err(wrong);
    }
}

#[test]
fn every_flag_has_an_environment_variable() {
    use clap::CommandFactory as _;
    for command in Args::command().get_subcommands() {
        let is_flag = |flag: &&clap::Arg| {
            !flag.is_positional() && !matches!(flag.get_id().as_str(), "help" | "version")
        };
        for flag in command.get_arguments().filter(is_flag) {
            let variable = flag.get_env().expect("an environment variable").to_string_lossy().into_owned();
            let long = flag.get_long().expect("a long name").to_ascii_uppercase().replace('-', "_");
            let expected = if long == "STATUS_PORT" { "STATUSPORT".to_owned() } else { long };
            assert_eq!(variable, format!("APP_HEALTH_{expected}"));
            assert!(!variable.ends_with("_PORT"));
        }
    }
}
