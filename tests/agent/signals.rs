//! Tests of SIGUSR1, which the agent passes on so that Envoy reopens its log, of SIGUSR2, which restarts the
//! agent, and of blocked signals.

use kit::envoy::Version;
use kit::sidecar::Builder;
use kit::wait;
use nix::sys::signal::{SigSet, Signal};

use crate::exit::script;

/// Envoy does not handle the signal from its first moment on, and a process that does not handle it is
/// terminated by it. The script in front of Envoy is such a process.
#[tokio::test]
async fn logs_are_reopened_once_envoy_handles_the_signal() {
    let builder = Builder::bare("signals-reopen");
    let (envoy, started) = (Version::Newest.binary(), builder.folder.join("started"));
    let text = format!(
        "[ \"$1\" = --version ] && exec {envoy} --version\ntouch {started}\nsleep 1\nexec {envoy} \"$@\"",
        envoy = envoy.display(),
        started = started.display()
    );
    let script = script(&builder.folder, &text);
    let (file, rotated) = (builder.folder.join("envoy.log"), builder.folder.join("envoy.log.1"));
    let sidecar = builder
        .args(&["--envoy", script.to_str().expect("a path")])
        .envoy_args(&["--log-path", file.to_str().expect("a path")])
        .start();
    wait::until("the script runs", async || started.exists()).await;
    sidecar.signal(Signal::SIGUSR1);
    sidecar.until(200, "ready").await;
    std::fs::rename(&file, &rotated).expect("Envoy's log");
    sidecar.signal(Signal::SIGUSR1);
    wait::until("Envoy reopens its log", async || file.exists()).await;
    assert_eq!(sidecar.ready("").await.status, 200);
}

/// A process inherits the signals that its parent has blocked.
#[tokio::test]
async fn signals_that_the_parent_blocked_are_handled() {
    let builder = Builder::new("signals-blocked").args(&["--drain-seconds", "0"]);
    let blocked = SigSet::from_iter([Signal::SIGTERM, Signal::SIGCHLD]);
    blocked.thread_block().expect("the signals exist");
    let sidecar = builder.start();
    blocked.thread_unblock().expect("the signals exist");
    sidecar.until(200, "ready").await;
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", sidecar.envoy_pid())).expect("Envoy runs");
    assert!(status.contains("SigBlk:\t0000000000000000\n"), "{status}");
    sidecar.signal(Signal::SIGTERM);
    let (code, log) = sidecar.end().await;
    assert_eq!(code, Some(0), "{log}");
}

/// Its Envoy ends with the agent, so that requests have to end first.
#[tokio::test]
async fn an_agent_that_starts_envoy_drains_before_it_is_restarted() {
    let sidecar = Builder::new("signals-restart").args(&["--drain-seconds", "0"]).start();
    sidecar.until(200, "ready").await;
    sidecar.signal(Signal::SIGUSR2);
    let (code, log) = sidecar.end().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("drain started"), "{log}");
}
