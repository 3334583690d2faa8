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
fn addresses_of_the_api_server_are_blocks() {
    let addresses = |value: &str| match Args::try_parse_from(["app-health", "webhook", value])?.command {
        Command::Webhook(webhook) => Ok::<_, clap::Error>(webhook.api_server_address),
        _ => unreachable!("the command is webhook"),
    };
    let some = addresses("--api-server-address=192.0.2.1,2001:db8::/64").expect("two blocks");
    assert_eq!(some, ["192.0.2.1/32", "2001:db8::/64"].map(|block| block.parse().expect("a block")));
    for wrong in ["192.0.2.0/33", "kubernetes.default", ""] {
        addresses(&format!("--api-server-address={wrong}")).expect_err(wrong);
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
