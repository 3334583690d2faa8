//! Generates docs/agent.md from the definition of the command line and compares it with the file.

use std::fmt::Write as _;

use app_health_agent::args::Args;
use clap::{Arg, CommandFactory};
use kit::envoy::workspace;

/// Introduction of docs/agent.md.
const HEAD: &str = "# The agent's command line

Which flags does the agent have? `./justw bless` generates this page from the definition of the
command line; `--help` shows the same text. A flag overrides its environment variable, which
overrides Istio's name for the setting, if there is one. An empty variable counts as absent. The
endpoints and the exit codes are in [configuration.md](configuration.md#the-agent).
";

/// Renders docs/agent.md.
fn page() -> String {
    let mut page = HEAD.to_owned();
    for command in Args::command().get_subcommands().filter(|command| !command.is_hide_set()) {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = write!(page, "\n## {}\n\n{}.\n", command.get_name(), escaped(&about));
        if let Some(help) = command.get_after_help() {
            let _ = write!(page, "\n{}\n", escaped(&help.to_string()));
        }
        let arguments = command.get_arguments().filter(|argument| argument.get_long() != Some("help"));
        let (headed, others): (Vec<_>, Vec<_>) =
            arguments.partition(|argument| argument.get_help_heading().is_some());
        page.push_str(&table(&others));
        if let Some(heading) = headed.first().and_then(|argument| argument.get_help_heading()) {
            let _ = write!(page, "\n### {heading}\n{}", table(&headed));
        }
    }
    page
}

fn table(arguments: &[&Arg]) -> String {
    let mut table = "\n| flag | variable | default | meaning |\n| --- | --- | --- | --- |\n".to_owned();
    for argument in arguments {
        let twin = argument.get_env().map(|name| format!("`{}`", name.to_string_lossy())).unwrap_or_default();
        let defaults: Vec<_> = argument
            .get_default_values()
            .iter()
            .map(|value| format!("`{}`", value.to_string_lossy()))
            .collect();
        let help = argument.get_long_help().or_else(|| argument.get_help());
        let help = help.map(ToString::to_string).unwrap_or_default();
        let is_switch = !argument.get_action().takes_values();
        let default = if is_switch { "off".to_owned() } else { defaults.join(", ") };
        let cells = [name(argument, is_switch), twin, default, escaped(&help)];
        let _ = writeln!(table, "| {} |", cells.join(" | "));
    }
    table
}

/// Renders the first cell of a row, such as `--admin ADDRESS`, `--dynamic auto|on|off` or `-- CMD`.
fn name(argument: &Arg, is_switch: bool) -> String {
    let words: Vec<_> =
        argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    let value = match argument.get_value_names() {
        _ if is_switch => String::new(),
        _ if !words.is_empty() => words.join("|"),
        Some(names) => names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        None => String::new(),
    };
    let name = match argument.get_long() {
        Some(long) => format!("--{long}"),
        None if argument.is_last_set() => "--".to_owned(),
        None => String::new(),
    };
    escaped(&format!("`{}`", format!("{name} {value}").trim()))
}

/// Escapes text for a table cell.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// With `UPDATE_GOLDEN=1` the test writes the page.
#[test]
fn the_page_matches_the_command_line() {
    let file = workspace().join("docs/agent.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, page()).expect("the page is writable");
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(found == page(), "docs/agent.md is outdated: run ./justw bless and review the diff");
}

#[test]
fn help_and_page_name_the_same_flags() {
    let page = page();
    for command in Args::command().get_subcommands_mut() {
        let help = command.render_long_help().to_string();
        for flag in command.get_arguments().filter_map(|argument| argument.get_long()) {
            let flag = format!("--{flag}");
            assert!(help.contains(&flag), "{flag}");
            assert!(flag == "--help" || page.contains(&format!("`{flag}")), "{flag}");
        }
        assert!(command.is_hide_set() || page.contains(&format!("\n## {}\n", command.get_name())));
    }
}
