//! Tests of `app-health --version`.

use kit::agent;

async fn stdout(flag: &str) -> String {
    let command = agent::command_of("app-health", &[flag]).spawn().expect("the program starts");
    let outcome = agent::finish(command).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    outcome.stdout
}

#[tokio::test]
async fn the_version_has_a_stable_first_line() {
    let first = concat!("app-health ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(stdout("-V").await, first);
    let facts = "commit: unknown\ntested with Envoy: 1.40.0, 1.39.1\ntested with Kubernetes: 1.36.3\n";
    assert_eq!(stdout("--version").await, format!("{first}{facts}"));
}
