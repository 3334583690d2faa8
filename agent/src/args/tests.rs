use clap::CommandFactory;

use super::*;

#[test]
fn clap_debug_assertions_pass() {
    Args::command().debug_assert();
}

/// Returns (command, flag, environment variable, aliases) of every flag except clap's own.
fn flags() -> Vec<(String, String, String, Vec<String>)> {
    let args = Args::command();
    let commands = args.get_subcommands();
    commands
        .flat_map(|command| {
            command.get_arguments().filter_map(|flag| {
                let long = flag.get_long()?;
                let variable = flag.get_env().unwrap_or_default().to_string_lossy().into_owned();
                let aliases = flag.get_all_aliases().unwrap_or_default();
                let aliases = aliases.into_iter().map(str::to_owned).collect();
                (long != "help").then(|| (command.get_name().to_owned(), long.to_owned(), variable, aliases))
            })
        })
        .collect()
}

fn kebab_case(flag: &str) -> String {
    flag.chars().fold(String::new(), |mut kebab, char| {
        if char.is_ascii_uppercase() {
            kebab.push('-');
        }
        kebab.push(char.to_ascii_lowercase());
        kebab
    })
}

#[test]
fn every_flag_has_a_variable_and_a_kebab_case_name() {
    let flags = flags();
    assert!(flags.len() > 25, "{flags:?}");
    for (command, flag, variable, aliases) in flags {
        let kebab = kebab_case(&flag);
        let prefix = match command.as_str() {
            "wait" | "drain" | "undrain" | "quit" => format!("APP_HEALTH_{}_", command.to_uppercase()),
            _ => "APP_HEALTH_".to_owned(),
        };
        let plural = if kebab.ends_with("-port") { "S" } else { "" };
        let words = kebab.replace("service-", "service").replace('-', "_").to_uppercase();
        let expected = format!("{prefix}{words}{plural}");
        assert_eq!(variable, expected, "{command} --{flag}");
        assert!(!variable.ends_with("_PORT") && !variable.contains("_SERVICE_"), "{variable}");
        assert!(flag == kebab || aliases.contains(&kebab), "{command} --{flag} has no --{kebab}");
    }
}

#[test]
fn an_unknown_flag_names_the_nearest_one() {
    let error = Args::try_parse_from(["app-health-agent", "run", "--admn", "x"]).unwrap_err().to_string();
    assert!(error.contains("'--admin'"), "{error}");
}

#[test]
fn rejected_values() {
    for line in [
        "run --admin 10.0.0.5:15000",
        "run --data-path https://localhost/",
        "run --admin-timeout-seconds 31",
        "bootstrap --local-address 0.0.0.0:15004",
        "bootstrap --allow-from nodes",
        "bootstrap --instance-ip app",
        "bootstrap --reserved-port 0",
        "bootstrap --reserved-port 8080,65536",
        "wait --url https://localhost:15021/healthz/ready",
        "wait --periodMillis 0",
        "wait -- ",
        "wait cmd",
        "drain --url http://127.0.0.1:15004/drain",
        "drain --timeoutSeconds 0",
        "quit --url https://127.0.0.1:15004",
        "run --concurrency 0",
        "run --drain-deadline-seconds 0",
    ] {
        let words = ["app-health-agent"].into_iter().chain(line.split(' '));
        let parsed = Args::try_parse_from(words);
        // `wait --` with an empty command is an ordinary wait.
        assert_eq!(parsed.is_err(), line != "wait -- ", "{line}: {parsed:?}");
    }
}
