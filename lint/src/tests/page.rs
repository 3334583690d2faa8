//! Generates docs/lint.md from the rules and their examples, and compares it with the file.

use std::fmt::Write as _;
use std::path::Path;

use super::{example, updates_golden};
use crate::rule::{INJECTION_RULES, PLACEMENT_RULES, PROBE_RULES};
use crate::{IGNORE_ANNOTATION, RULES};

const HEAD: &str = include_str!("page/head.md");

const INJECTION: &str = "## Rules about injection

`app-health inject` does not change what it cannot rewrite correctly. These rules report it before
you inject; [the injector](injection.md#warnings) has the same words, except for `wrong-place`, which
only `lint` reports. They depend on the flags of `inject`, which `lint` has too. The findings
`named-port`, `host`, `init-container` and `container-name` do not depend on them.
";

/// Renders docs/lint.md.
fn page() -> String {
    let mut page = HEAD.to_owned();
    page.push_str(
        "\n## Rules about probes and hooks\n\n| code | severity | what it finds |\n| --- | --- | --- |\n",
    );
    for rule in PROBE_RULES {
        let anchor = format!("{}-{}", rule.code.to_lowercase(), rule.name);
        let _ = writeln!(page, "| [{}](#{anchor}) | {} | {} |", rule.code, rule.severity.word(), rule.title);
    }
    for rule in PROBE_RULES {
        let _ = write!(
            page,
            "\n### {} {}\n\n{}.\n\n{}\n\n```yaml\n{}```\n\n{}\n\n```yaml\n{}```\n",
            rule.code,
            rule.name,
            sentence(rule.title),
            wrapped(rule.why),
            shown(&example(rule.code, "bad")),
            wrapped(rule.fix),
            shown(&example(rule.code, "good")),
        );
    }
    let _ = write!(page, "\n{INJECTION}\n| code | name | severity | what it finds | why | what to do |\n");
    page.push_str("| --- | --- | --- | --- | --- | --- |\n");
    for rule in INJECTION_RULES.iter().chain(PLACEMENT_RULES) {
        let _ = writeln!(
            page,
            "| {} | `{}` | {} | {} | {} | {} |",
            rule.code,
            rule.name,
            rule.severity.word(),
            rule.title,
            rule.why,
            rule.fix
        );
    }
    page
}

/// Returns an example of a Pod without the lines that all of them have.
fn shown(example: &str) -> String {
    let common = ["apiVersion: v1", "kind: Pod", "metadata: {name: shop}"];
    let lines = example.lines().filter(|line| !common.contains(line));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Returns a phrase with a capital letter at its start.
fn sentence(phrase: &str) -> String {
    let mut chars = phrase.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    wrapped(&(first + chars.as_str()))
}

/// Breaks a text into lines of at most 100 columns.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("a line");
        if !line.is_empty() && line.len() + 1 + word.len() > 100 {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

/// With `UPDATE_GOLDEN=1`, this test writes the page.
#[test]
fn the_page_matches_the_rules() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/lint.md");
    if updates_golden() {
        std::fs::write(&file, page()).expect("the page is writable");
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(found == page(), "docs/lint.md is outdated: run ./justw bless and review the diff");
}

#[test]
fn the_page_names_every_rule_and_the_annotation() {
    let page = page();
    assert!(page.contains(IGNORE_ANNOTATION));
    assert!(RULES.iter().all(|rule| page.contains(rule.code) && page.contains(rule.name)));
}
