//! Checks of docs/kubernetes.md that need no cluster; its commands are run by `./justw
//! test-kubernetes`.

use std::collections::BTreeSet;

use probe::reason::Reason;

use crate::doc_test::{Block, blocks, inline};
use kit::envoy::workspace;

fn page() -> String {
    std::fs::read_to_string(workspace().join("docs/kubernetes.md")).expect("the page")
}

fn all() -> Vec<Block> {
    blocks(&page()).unwrap_or_else(|error| panic!("docs/kubernetes.md, {error}"))
}

/// The page builds images from source and pushes them to a registry. The tests have no registry,
/// and their node already has the images.
#[test]
fn only_image_builds_are_not_executed() {
    let elsewhere: Vec<String> = all()
        .iter()
        .filter(|block| !block.mark.is_empty())
        .flat_map(|block| block.script.lines().map(move |line| format!("{}: {line}", block.mark)))
        .collect();
    let expected = [
        "elsewhere: docker build --tag registry.example.com/app-health:0.1.0 .",
        "elsewhere: docker build --tag registry.example.com/app-health-control-plane:0.1.0 --file Dockerfile.control-plane .",
        "elsewhere: docker push registry.example.com/app-health:0.1.0",
        "elsewhere: docker push registry.example.com/app-health-control-plane:0.1.0",
    ];
    assert_eq!(elsewhere, expected);
}

/// Every command in a sentence or a table must also occur in a block.
#[test]
fn no_command_is_outside_of_blocks() {
    let page = page();
    let blocks = all();
    let programs = ["kubectl ", "docker ", "app-health ", "sed ", "helm "];
    let commands =
        inline(&page).into_iter().filter(|code| programs.iter().any(|name| code.starts_with(name)));
    let unknown: Vec<&str> =
        commands.filter(|command| !blocks.iter().any(|block| block.script.contains(command))).collect();
    assert_eq!(unknown, Vec::<&str>::new());
}

#[test]
fn the_page_names_this_version() {
    assert!(page().contains(concat!("registry.example.com/app-health:", env!("CARGO_PKG_VERSION"), "\"")));
}

/// The table of statuses must contain each failure with its status and reason word.
#[test]
fn each_status_is_explained() {
    let page = page();
    let (_, table) = page.split_once("| statuscode | word |").expect("the table");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let explained: BTreeSet<String> = rows
        .map(|row| {
            let mut cells = row.split('|').map(str::trim).skip(1);
            let (status, word) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
            assert!(cells.all(|cell| !cell.is_empty()) || row.ends_with('|'), "{row}");
            format!("{status} {word}")
        })
        .collect();
    let status = |reason: Reason| match reason {
        // A failure of the application has the status that the application sent.
        Reason::Application => "400-599".to_owned(),
        _ => reason.status().to_string(),
    };
    let failures = Reason::ALL.into_iter().filter(|reason| !reason.is_success());
    let expected: BTreeSet<String> =
        failures.map(|reason| format!("{} `{}`", status(reason), reason.word())).collect();
    assert_eq!(explained, expected);
}
