//! How many descriptors the agent and its Envoy may have, and what becomes of an agent with too few.

use kit::agent;
use kit::sidecar::Builder;
use tokio::process::Command;

/// Soft and hard limit of open files of a process.
fn limits(pid: &str) -> Vec<String> {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).expect("it runs");
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("a line");
    line.split_whitespace().take(2).map(str::to_owned).collect()
}

/// By itself: the agent hands on what it was given.
#[tokio::test]
async fn envoy_has_as_many_as_it_may_have() {
    let sidecar = Builder::new("descriptors").inside(&["prlimit", "--nofile=1000:3000"]).start();
    sidecar.until(200, "ready").await;
    assert_eq!(limits(&sidecar.pid().to_string()), ["1000", "3000"], "the agent's, and that of its probes");
    assert_eq!(limits(&sidecar.envoy().to_string()), ["3000", "3000"]);
}

/// Five are needed before anything can be told; with three there is no library to load.
#[tokio::test]
async fn too_few_are_told() {
    for limit in 5..=8 {
        let mut command = Command::new("prlimit");
        command.arg(format!("--nofile={limit}:{limit}")).arg(agent::binary());
        let output = command.args(["run", "--no-envoy"]).env_clear().output().await.expect("prlimit");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), text.lines().count()), (Some(71), 1), "{limit}: {text}");
        assert!(text.contains("cannot start: Too many open files"), "{limit}: {text}");
    }
}
