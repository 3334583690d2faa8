//! Measures the time from the death of Envoy to the first 503 of the readiness endpoint.

use std::io::{ErrorKind, Result};
use std::time::Duration;

use kit::net;
use kit::pod::Pod;
use kit::quiet_rounds::QuietRounds;
use kit::report::Row;
use kit::sidecar::{Builder, Sidecar};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tokio::time::Instant;

use crate::caller::Caller;
use crate::{READY, millis};

/// Returns the slowest of `rounds` deaths, for an Envoy that the agent started and for an external
/// one.
pub(crate) async fn measure(quiet: &mut QuietRounds, rounds: u32) -> Result<Vec<Row>> {
    let (mut child, mut theirs) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..rounds {
        let (of_child, of_theirs) = quiet.round(round).await?;
        (child, theirs) = (child.max(of_child), theirs.max(of_theirs));
    }
    let row = |name: &str, time| Row::new(name, millis(time), "ms").at_most(1000.0);
    Ok(vec![
        row("503 after Envoy, a child, is killed", child),
        row("503 after Envoy is killed, --no-envoy", theirs),
    ])
}

/// Kills an Envoy that the agent started, and an external one.
async fn round() -> Result<(Duration, Duration)> {
    // `--envoy-restart always` keeps the agent running after Envoy has died, so that it can answer.
    let sidecar = Builder::new("b-death").args(&["--envoy-restart", "always"]).start();
    sidecar.until(200, "ready").await;
    let child = killed(&sidecar, sidecar.envoy_pid())?;

    let pod = Pod::start("b-pod", net::loopback(), &json!({})).await;
    let admin = format!("unix:{}", pod.envoy.folder.join("admin.sock").display());
    let data_path = format!("http://{}", pod.listener);
    let sidecar = Builder::bare("b-theirs")
        .args(&["--no-envoy", "--admin", &admin, "--data-path", &data_path])
        .start_plain();
    sidecar.until(200, "ready").await;
    Ok((child, killed(&sidecar, Pid::from_raw(pod.envoy.pid().cast_signed()))?))
}

fn killed(sidecar: &Sidecar, envoy: Pid) -> Result<Duration> {
    let caller = Caller::new(sidecar.ready_address(), READY);
    caller.ask(200)?;
    let killed = Instant::now();
    kill(envoy, Signal::SIGKILL)?;
    loop {
        match caller.ask(200) {
            Ok(_) => {}
            // The SIGCHLD of an Envoy that is a child of this process interrupts the call.
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    let took = killed.elapsed();
    caller.ask(503)?;
    Ok(took)
}
