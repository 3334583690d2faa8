//! Renders the definition of a command line as a Markdown page.

use std::fmt::Write as _;

use clap::{Arg, Command};

/// Returns a page with `head` and a section for each command of `program` that is not hidden.
pub fn page(head: &str, program: &Command) -> String {
    let mut page = head.to_owned();
    for command in commands(program) {
        section(&mut page, "", command);
    }
    page
}

/// Checks that each flag and command of `program` is in `--help` and in the page.
///
/// # Panics
/// If one is missing.
pub fn assert_complete(page: &str, mut program: Command) {
    for command in program.get_subcommands_mut() {
        let help = command.render_long_help().to_string();
        for flag in command.get_arguments().filter_map(Arg::get_long) {
            let in_page = ["`--", ", --"].iter().any(|before| page.contains(&format!("{before}{flag}")));
            assert!(help.contains(&format!("--{flag}")) && (in_page || flag == "help"), "--{flag}");
        }
        assert!(command.is_hide_set() || page.contains(&format!("\n## {}\n", command.get_name())));
    }
}

fn commands(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|command| !command.is_hide_set())
}

fn section(page: &mut String, parent: &str, command: &Command) {
    let name = format!("{parent}{}", command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let _ = write!(page, "\n## {name}\n\n{}.\n", escaped(&about));
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
    for inner in commands(command) {
        section(page, &format!("{name} "), inner);
    }
}

fn table(arguments: &[&Arg]) -> String {
    if arguments.is_empty() {
        return String::new();
    }
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
        _ if words.iter().any(|word| word == "true") => "true|false".to_owned(),
        _ if !words.is_empty() => words.join("|"),
        Some(names) => names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        None => String::new(),
    };
    let name = match (argument.get_long(), argument.get_short()) {
        (Some(long), Some(short)) => format!("-{short}, --{long}"),
        (Some(long), None) => format!("--{long}"),
        (None, _) if argument.is_last_set() => "--".to_owned(),
        (None, _) => String::new(),
    };
    escaped(&format!("`{}`", format!("{name} {value}").trim()))
}

/// Escapes text for a table cell.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
