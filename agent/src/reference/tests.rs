use std::path::Path;

use super::*;

/// With `UPDATE_GOLDEN=1` the test writes the page.
#[test]
fn the_page_is_what_the_definition_says() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/agent.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, page()).unwrap();
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(found == page(), "docs/agent.md is outdated: run ./justw bless and review the diff");
}

#[test]
fn help_completion_and_page_name_the_same_flags() {
    let page = page();
    let mut script = Vec::new();
    clap_complete::generate(Shell::Bash, &mut Args::command(), "app-health-agent", &mut script);
    let script = String::from_utf8(script).unwrap();
    for command in Args::command().get_subcommands_mut() {
        let help = command.render_long_help().to_string();
        for flag in command.get_arguments().filter_map(|argument| argument.get_long()) {
            let flag = format!("--{flag}");
            assert!(help.contains(&flag) && script.contains(&flag), "{flag}");
            assert!(flag == "--help" || page.contains(&format!("`{flag}")), "{flag}");
        }
        assert!(command.is_hide_set() || page.contains(&format!("\n## {}\n", command.get_name())));
    }
}
