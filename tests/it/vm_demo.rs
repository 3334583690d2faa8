//! `./justw demo-vm`, by itself from beginning to end; and the files that it shows.

use std::process::Stdio;

use tests::envoy::workspace;
use tests::vm::scene::SOON;
use tests::{agent, net};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;

#[tokio::test]
async fn the_demo_shows_everything_and_ends_well() {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_demo-vm"));
    demo.args(["--once", "--addresses", &net::loopbacks(5).to_string()]).kill_on_drop(true);
    demo.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let outcome = agent::finish(demo.spawn().expect("the demo starts")).await;
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
    for wanted in [
        "with 503: removed",
        "hangs: removed",
        "killed: removed after grace period",
        "requests through Envoy",
    ] {
        assert!(outcome.stdout.contains(wanted), "{wanted}: not in {}", outcome.stdout);
    }
}

#[tokio::test]
async fn its_keys_do_what_the_table_says() {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_demo-vm"));
    demo.args(["--addresses", &net::loopbacks(5).to_string()]).kill_on_drop(true);
    demo.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut demo = demo.spawn().expect("the demo starts");
    let mut keys = demo.stdin.take().expect("a pipe");
    let mut lines = BufReader::new(demo.stdout.take().expect("a pipe")).lines();
    // What a key does may show in any order.
    let steps: [(&[&str], &str); 4] = [
        (&["payments-1: added to Envoy", "payments-3: added to Envoy"], "1"),
        (&["payments-1: application responds with 503", "payments-1: removed from Envoy"], "9"),
        (&["payments-3: agent killed", "payments-3: removed from Envoy"], "1"),
        (&["payments-1: added to Envoy, "], "q"),
    ];
    for (wanted, key) in steps {
        let mut wanted = wanted.to_vec();
        let seen = async {
            while let Ok(Some(line)) = lines.next_line().await {
                wanted.retain(|words| !line.contains(words));
                if wanted.is_empty() {
                    return;
                }
            }
        };
        // Too late or not at all: what is missing says which.
        let _ = tokio::time::timeout(SOON, seen).await;
        assert!(wanted.is_empty(), "not shown: {wanted:?}");
        keys.write_all(key.as_bytes()).await.expect("the demo reads");
    }
    let rest = async { while let Ok(Some(_)) = lines.next_line().await {} };
    tokio::time::timeout(SOON, rest).await.expect("the demo ends");
    assert_eq!(demo.wait().await.expect("a child").code(), Some(0));
}

#[tokio::test]
async fn the_example_configuration_is_accepted() {
    let config = workspace().join("envoy-config/vm/config");
    let mut check = agent::command_of("app-health", &["discovery", "--check", "--config-dir"]);
    check.arg(config);
    let outcome = agent::finish(check.spawn().expect("it starts")).await;
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
}

/// Every flag of a unit exists.
async fn knows_flags(unit: &str, binary: &str, command: &str) {
    let text = std::fs::read_to_string(workspace().join("envoy-config/vm").join(unit)).expect("it is there");
    let help = agent::command_of(binary, &[command, "--help"]).spawn().expect("it starts");
    let help = agent::finish(help).await.stdout;
    let known = |flag: &str| help.split([' ', '\n', ',', '=']).any(|word| word == flag);
    let start = text.split("ExecStart=").nth(1).expect("a command");
    let lines = start.lines().take_while(|line| !line.trim().is_empty());
    let flags: Vec<&str> =
        lines.flat_map(str::split_whitespace).filter(|word| word.starts_with("--")).collect();
    assert!(flags.len() > 3, "{unit}: {flags:?}");
    for flag in flags {
        assert!(known(flag), "{unit}: {flag} is not in\n{help}");
    }
}

#[tokio::test]
async fn the_units_name_flags_that_exist() {
    knows_flags("app-health-discovery.service", "app-health", "discovery").await;
    knows_flags("app-health-agent.service", "app-health-agent", "run").await;
}
