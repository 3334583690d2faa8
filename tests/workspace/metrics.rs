//! The tables of metrics in the documents have the names under which the sources register them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::{files, root};

/// Metrics with a common prefix.
struct Family {
    prefix: &'static str,
    /// The tables, as page and heading.
    tables: &'static [(&'static str, &'static str)],
    /// Folders and files of the code.
    sources: &'static [&'static str],
}

const FAMILIES: [Family; 4] = [
    Family {
        prefix: "app_health_agent_",
        tables: &[("docs/configuration.md", "### Metrics of the agent"), ("docs/vm.md", "## Monitoring")],
        sources: &["agent-state/src", "serving/src"],
    },
    Family {
        prefix: "app_health_discovery_",
        tables: &[("docs/discovery.md", "### Connections and metrics")],
        sources: &["discovery-server/src", "serving/src"],
    },
    Family {
        prefix: "app_health_webhook_",
        tables: &[("docs/injection.md", "### Metrics of the webhook")],
        sources: &["control-plane/src/webhook", "serving/src"],
    },
    Family {
        prefix: "app_health_",
        tables: &[("docs/answers.md", "## Metrics")],
        sources: &["probe/src/metrics.rs"],
    },
];

/// Returns the names in the first column of the tables below a heading, without labels and prefix.
fn documented(page: &str, heading: &str, prefix: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join(page)).expect("a page");
    let (_, section) = text.split_once(&format!("\n{heading}\n")).expect(heading);
    let section = section.split("\n#").next().unwrap_or_default();
    let cells = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('|').next());
    let names = cells.flat_map(|cell| cell.split('`').step_by(2));
    let name =
        |name: &str| name.split('{').next().unwrap_or_default().trim().trim_start_matches(prefix).to_owned();
    names.map(name).filter(|name| !name.is_empty()).collect()
}

/// Returns the names that a source registers. The exposition adds `_total` to those of counters.
fn registered(source: &str, prefix: &str) -> Vec<String> {
    let calls = ["register(", "add("].into_iter().flat_map(|call| {
        source.match_indices(call).map(move |(at, _)| (&source[..at], &source[at + call.len()..]))
    });
    let of_registry = calls.filter_map(|(before, after)| {
        let arguments = after.trim_start();
        let arguments = match arguments.starts_with('"') {
            true => arguments,
            false => arguments.split_once(',')?.1.trim_start(),
        };
        let name = arguments.strip_prefix('"')?.split('"').next()?;
        let is_name = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        let suffix = if is_counter(source, field(before, arguments)?) { "_total" } else { "" };
        is_name.then(|| format!("{name}{suffix}"))
    });
    let start = format!("(\"{prefix}");
    let whole = source.split(&start).skip(1).filter_map(|text| text.split('"').next());
    of_registry.chain(whole.filter(|name| !name.is_empty()).map(str::to_owned)).collect()
}

/// Returns the field that holds a metric: `field: register(…)`, or `registry.register(…, field.clone())`.
fn field<'a>(before: &'a str, arguments: &'a str) -> Option<&'a str> {
    let is_name = |char: char| char.is_ascii_alphanumeric() || char == '_';
    let before = before.trim_end();
    let text = match before.strip_suffix(':') {
        Some(text) => text,
        None if before.ends_with('.') => arguments.split_once(".clone()")?.0,
        None => before.trim_end_matches('=').trim_end().rsplit_once(':')?.0,
    };
    text.rsplit(|char| !is_name(char)).next()
}

/// Returns true if a field or variable of this name is declared as a counter.
fn is_counter(source: &str, field: &str) -> bool {
    source.lines().any(|line| {
        let line = line.trim().trim_start_matches("pub ").trim_start_matches("let ");
        line.strip_prefix(field).is_some_and(|kind| kind.starts_with(": ") && kind.contains("Counter"))
    })
}

fn sources(path: &Path) -> Vec<String> {
    let found = if path.is_dir() { files(path, ".rs") } else { vec![path.to_path_buf()] };
    let found = found.into_iter().filter(|file| {
        let path = file.strip_prefix(root()).unwrap_or(file).to_string_lossy();
        path.contains("metrics") && !path.ends_with("tests.rs")
    });
    found.map(|file| fs::read_to_string(file).expect("a source")).collect()
}

#[test]
fn tables_of_metrics_are_those_of_the_code() {
    for Family { prefix, tables, sources: paths } in FAMILIES {
        let documented: BTreeSet<String> =
            tables.iter().flat_map(|(page, heading)| documented(page, heading, prefix)).collect();
        let sources: Vec<String> = paths.iter().flat_map(|path| sources(&root().join(path))).collect();
        let registered: BTreeSet<String> =
            sources.iter().flat_map(|source| registered(source, prefix)).collect();
        assert!(registered.len() > 3, "{prefix}: {registered:?}");
        assert_eq!(documented, registered, "{prefix}");
    }
}
