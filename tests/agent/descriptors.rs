//! Tests of the limit of open files: which limits the agent and Envoy run with, and how the agent
//! fails when the limit is too low.

use kit::agent;
use kit::sidecar::Builder;
use tokio::process::Command;

/// Returns the soft and the hard limit of open files of a process.
fn limits(pid: &str) -> Vec<String> {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).expect("the process exists");
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("a line");
    line.split_whitespace().take(2).map(str::to_owned).collect()
}

/// The agent raises Envoy's soft limit to the hard limit and leaves its own limits unchanged.
#[tokio::test]
async fn envoy_gets_the_hard_limit_of_descriptors() {
    let sidecar = Builder::new("descriptors").inside(&["prlimit", "--nofile=1000:3000"]).start();
    sidecar.until(200, "ready").await;
    assert_eq!(
        limits(&sidecar.pid().to_string()),
        ["1000", "3000"],
        "limits of the agent and of the commands of its probes"
    );
    assert_eq!(limits(&sidecar.envoy_pid().to_string()), ["3000", "3000"]);
}

/// With fewer than five descriptors the agent cannot print an error; with three, the dynamic loader
/// cannot open the libraries.
#[tokio::test]
async fn too_few_descriptors_are_reported_by_the_agent() {
    for limit in 5..=8 {
        let mut command = Command::new("prlimit");
        command.arg(format!("--nofile={limit}:{limit}")).arg(agent::binary());
        let output = command.args(["run", "--no-envoy"]).env_clear().output().await.expect("prlimit");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), text.lines().count()), (Some(71), 1), "{limit}: {text}");
        assert!(text.contains("cannot start: Too many open files"), "{limit}: {text}");
    }
}
