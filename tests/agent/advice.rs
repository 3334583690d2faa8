//! Tests of the flags that texts of the agent name: each exists in the command that prints the text.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use app_health_agent::args::Args;
use clap::CommandFactory as _;
use kit::envoy::{self, workspace};
use kit::{agent, net};

use crate::exit::script;

/// Files whose texts other commands than `run` print, with these commands. A flag must exist in all.
const COMMANDS: [(&str, &[&str]); 5] = [
    ("config/bootstrap.rs", &["run", "bootstrap"]),
    ("filter_choice.rs", &["run", "bootstrap"]),
    ("state_dir.rs", &["run", "bootstrap"]),
    ("config/wait.rs", &["wait"]),
    ("wait", &["wait"]),
];
/// The crates whose texts name flags.
const CRATES: [&str; 11] = [
    "address",
    "agent",
    "agent-output",
    "agent-server",
    "agent-state",
    "envoy-bootstrap",
    "envoy-process",
    "http-client",
    "readiness",
    "scrape",
    "workload-prober",
];
/// Flags of a text that only one command prints, although its file belongs to several.
const ONLY: [(&str, &str, &str); 3] = [
    ("app.rs", "--output", "bootstrap"),
    ("app.rs", "--inline-filter", "bootstrap"),
    // The error is that this flag is set.
    ("config/bootstrap.rs", "--inline-filter", "bootstrap"),
];
/// Words that look like flags of the agent but are flags of Envoy or of `groupadd`, or part of a format.
const OTHERS: [&str; 11] = [
    "--component-log-level",
    "--config-path",
    "--config-yaml",
    "--contents",
    "--disable-hot-restart",
    "--drain-strategy",
    "--drain-time-s",
    "--log-level",
    "--mode",
    "--system",
    "--version",
];

/// Returns the flags of each command.
fn flags() -> BTreeMap<String, BTreeSet<String>> {
    let flags = |command: &clap::Command| {
        let names = command.get_arguments().filter_map(|flag| flag.get_long_and_visible_aliases()).flatten();
        names.map(|name| format!("--{name}")).collect()
    };
    Args::command().get_subcommands().map(|command| (command.get_name().to_owned(), flags(command))).collect()
}

/// Returns the flags in a text, without those that the text attributes to a command, such as
/// "--local-group of `run`".
fn named(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (place, _) in text.match_indices("--") {
        let is_start = !text[..place].ends_with(|before: char| before.is_alphanumeric() || before == '-');
        let rest = &text[place + 2..];
        let end = rest.find(|char: char| !char.is_ascii_alphanumeric() && char != '-').unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        if is_start
            && name.starts_with(|first: char| first.is_ascii_lowercase())
            && !after.starts_with(" of `")
        {
            found.insert(format!("--{}", name.trim_end_matches('-')));
        }
    }
    found
}

#[test]
fn flags_in_texts_are_found() {
    let text = "set --a-b=x or --c, not --d of `run`; a--e ---f -- --G --h--";
    assert_eq!(named(text), ["--a-b", "--c", "--h"].map(str::to_owned).into());
}

/// Returns the sources of the agent by their path, without comments and tests.
fn sources(folder: &Path, root: &Path, found: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.strip_prefix(root).expect("below it").display().to_string();
        if path.is_dir() {
            sources(&path, root, found);
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") && !name.contains("tests/") {
            let text = std::fs::read_to_string(&path).expect("text");
            let code: Vec<_> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
            found.insert(name, code.join("\n"));
        }
    }
}

#[test]
fn texts_name_flags_of_their_command() {
    let flags = flags();
    let mut files = Vec::new();
    for name in CRATES {
        let (root, mut found) = (workspace().join(name).join("src"), BTreeMap::new());
        sources(&root, &root, &mut found);
        files.extend(found);
    }
    let mut checked = 0;
    // The texts of `args` are checked as help texts.
    for (file, text) in files.iter().filter(|(file, _)| !file.starts_with("args")) {
        for flag in named(text).iter().filter(|flag| !OTHERS.contains(&flag.as_str())) {
            let only = ONLY.iter().find(|(other, name, _)| (other, name) == (&file.as_str(), &flag.as_str()));
            let row = COMMANDS.iter().find(|(prefix, _)| file.starts_with(prefix));
            let commands = match (only, row) {
                (Some((_, _, command)), _) => vec![*command],
                (None, Some((_, commands))) => commands.to_vec(),
                (None, None) => vec!["run"],
            };
            for command in commands {
                assert!(flags[command].contains(flag), "{file}: {flag} is no flag of `{command}`");
                checked += 1;
            }
        }
    }
    assert!(checked > 40, "{checked}");
}

#[test]
fn help_names_flags_of_its_command() {
    let flags = flags();
    for command in Args::command().get_subcommands() {
        let name = command.get_name();
        for flag in named(&command.clone().render_long_help().to_string()) {
            let is_known = flags[name].contains(&flag) || OTHERS.contains(&flag.as_str());
            assert!(is_known || ["--help", "--cmd"].contains(&flag.as_str()), "{name}: {flag}");
        }
    }
}

/// Each row has a command line that fails, and words of its error.
#[tokio::test]
async fn errors_name_flags_of_their_command() {
    let (flags, folder) = (flags(), envoy::folder("advice"));
    let broken = script(&folder, "echo 'error while loading shared libraries: libx.so' >&2; exit 127");
    let broken = broken.to_str().expect("a path");
    let ready = format!("{}:15021", net::loopback());
    let local = format!("{}:15004", net::loopback());
    let run = |flags: &[&str]| {
        let own = ["run", "--ready-address", &ready, "--local-address", &local, "--stats-address", "off"];
        [&own, flags].concat().join(" ")
    };
    for (line, code, words) in [
        (run(&["--envoy /bin/true --envoy-version 1.40 --state-dir /proc/nothing"]), 73, "--state-dir"),
        (run(&["--envoy /bin/true --envoy-version 1.40 --state-dir /tmp"]), 73, "--state-dir"),
        ("bootstrap --state-dir /proc/nothing".to_owned(), 73, "--inline-filter"),
        (
            run(&["--envoy", broken, "--state-dir", "/proc/nothing"]),
            64,
            "with code 127: error while loading shared",
        ),
        (run(&["--envoy /bin/false"]), 64, "--envoy-version"),
        (run(&["--inline-filter"]), 64, "--inline-filter"),
        (run(&["--filter native --filter-wasm /f.wasm --envoy /bin/true"]), 64, "--filter-wasm"),
        ("bootstrap --filter native --inline-filter".to_owned(), 64, "--inline-filter"),
        ("wait --url http://127.0.0.1:1/ --timeoutSeconds 0".to_owned(), 69, ""),
        ("quit --url http://127.0.0.1:1 --timeoutSeconds 1".to_owned(), 69, ""),
    ] {
        let words_of_line: Vec<_> = line.split(' ').collect();
        let outcome = agent::run(&words_of_line, &[]).await;
        assert_eq!(outcome.code, Some(code), "{line}: {outcome:?}");
        let last = outcome.stderr.lines().last().unwrap_or_default();
        assert!(last.contains(words), "{line}: {outcome:?}");
        for flag in named(last).iter().filter(|flag| !line.contains(flag.as_str()) && *flag != "--version") {
            assert!(flags[words_of_line[0]].contains(flag), "{line}: {flag} in {last}");
        }
    }
}
