//! How `run` ends when something is wrong, and what it leaves behind.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::geteuid;
use tests::agent;
use tests::not_tested;
use tests::sidecar::{Builder, is_alive};

#[tokio::test]
async fn an_envoy_that_dies_takes_the_agent_with_it() {
    let sidecar = Builder::new("exit-killed").start();
    sidecar.until(200, "ready").await;
    let envoy = sidecar.envoy();
    kill(envoy, Signal::SIGKILL).expect("Envoy runs");
    let (code, log) = sidecar.end().await;
    assert_eq!(code, Some(70), "{log}");
    assert!(log.contains("app-health-agent: Envoy ended unasked, by SIGKILL"), "{log}");
}

#[tokio::test]
async fn an_agent_that_dies_takes_envoy_with_it() {
    let sidecar = Builder::new("exit-agent").start();
    sidecar.until(200, "ready").await;
    let envoy = sidecar.envoy();
    sidecar.signal(Signal::SIGKILL);
    sidecar.end().await;
    for _ in 0..1000 {
        if !is_alive(envoy) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("Envoy lives on");
}

#[tokio::test]
async fn what_envoy_refuses_is_told_in_its_own_words() {
    let builder = Builder::new("exit-refused");
    let config = builder.folder.join("mine.json");
    std::fs::write(&config, r#"{"static_resources": {"listenerz": []}}"#).expect("a writable folder");
    let sidecar = builder.args(&["--envoy-config", config.to_str().expect("a path")]).start();
    let (code, log) = sidecar.end().await;
    assert_eq!(code, Some(64), "{log}");
    let last = log.lines().last().unwrap_or_default();
    assert!(last.contains("Envoy refuses its configuration") && last.contains("listenerz"), "{last}");
}

#[tokio::test]
async fn what_is_wrong_before_envoy_starts() {
    let builder = Builder::new("exit-taken");
    let taken = std::net::TcpListener::bind((builder.ip, 15004)).expect("a free port");
    let state = builder.folder.join("state");
    let (code, log) = builder.start().end().await;
    assert_eq!(code, Some(71), "{log}");
    assert!(log.contains("port 15004") && !log.contains("envoy started") && !state.exists(), "{log}");
    drop(taken);

    let builder = Builder::new("exit-state");
    std::fs::write(builder.folder.join("state"), "a file").expect("a writable folder");
    let (code, log) = builder.start().end().await;
    assert_eq!(code, Some(73), "{log}");
    assert!(!log.contains("envoy started"), "{log}");

    let builder = Builder::bare("exit-none").env("PATH", "/nonexistent");
    let state = builder.folder.join("state");
    let (code, log) = builder.start().end().await;
    assert_eq!(code, Some(64), "{log}");
    assert!(log.contains("/nonexistent") && log.contains("--no-envoy") && !state.exists(), "{log}");
}

/// As PID 1 the agent inherits every orphan. A script in Envoy's place makes a thousand of them, counts what is left, and ends with a
/// code of its own, which must not be lost among theirs.
#[tokio::test]
async fn as_pid_1_orphans_are_reaped_and_envoys_end_is_not_lost() {
    if !geteuid().is_root() {
        return not_tested::say("the agent as PID 1", "a PID namespace needs root");
    }
    let builder = Builder::bare("exit-pid1");
    let (script, left) = (builder.folder.join("envoy"), builder.folder.join("left"));
    let text = format!(
        "#!/bin/sh\nfor i in $(seq 1000); do (sleep 0.01 &) ; done; sleep 3\n\
         cat /proc/[0-9]*/stat | grep -c ') Z ' > {}\nexit 7\n",
        left.display()
    );
    std::fs::write(&script, text).expect("a writable folder");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("ours");
    let mut command = tokio::process::Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", "--kill-child"]).arg(agent::binary()).arg("run");
    for (flag, port) in [("--ready-address", 15021), ("--local-address", 15004)] {
        command.arg(flag).arg(format!("{}:{port}", builder.ip));
    }
    command.arg("--envoy").arg(&script).args(["--envoy-config", "/dev/null", "--data-path", "off"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let outcome = agent::finish(command.spawn().expect("unshare starts")).await;
    // The script refuses its configuration too, since it ends with 7 whatever it is asked: hence 64, with Envoy's end in the log.
    assert!(outcome.stderr.contains("envoy ended unasked ended=with code 7"), "{outcome:?}");
    assert_eq!(outcome.code, Some(64), "{outcome:?}");
    let left = std::fs::read_to_string(left).expect("the script counted");
    assert_eq!(left.trim(), "0", "zombies");
}
