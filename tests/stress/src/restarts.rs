//! An Envoy that is killed repeatedly and restarted by the agent: each process has a new restart
//! epoch, and the files of the previous one do not interfere.

use nix::sys::signal::{Signal, kill};
use serde_json::Value;
use tokio::time::Instant;

use super::float;
use kit::process::is_alive;
use kit::report::Row;
use kit::sidecar::{Builder, Sidecar};
use kit::wait::until;

/// Kills Envoy `times` times in a row, each time as soon as it is ready.
///
/// # Panics
/// If one does not become ready, an epoch is skipped, or two run at the same time.
pub async fn run(name: &str, times: u64) -> Vec<Row> {
    let sidecar = Builder::new(name).args(&["--envoy-restart", "always"]).start();
    let began = Instant::now();
    let mut before = None;
    for epoch in 1..=times {
        let envoy = lives(&sidecar, epoch).await;
        assert!(before.is_none_or(|before| before != envoy && !is_alive(before)), "{}", sidecar.log());
        kill(envoy, Signal::SIGKILL).expect("Envoy runs");
        until("the agent has detected the exit of Envoy", async || {
            let seen = verbose(&sidecar).await;
            seen["ready"] == false || seen["epoch"] != epoch
        })
        .await;
        before = Some(envoy);
    }
    let last = lives(&sidecar, times + 1).await;
    let took = began.elapsed().as_secs_f64();
    sidecar.signal(Signal::SIGTERM);
    let (code, log) = sidecar.end().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(!is_alive(last), "{log}");
    vec![
        Row::new("restarts in a row", float(times), "restarts"),
        Row::new("took, pauses included", took, "s"),
    ]
}

/// Waits until Envoy is ready in this epoch and returns its PID.
async fn lives(sidecar: &Sidecar, epoch: u64) -> nix::unistd::Pid {
    sidecar.until(200, "ready").await;
    assert_eq!(verbose(sidecar).await["epoch"], epoch, "{}", sidecar.log());
    sidecar.envoy_pid()
}

async fn verbose(sidecar: &Sidecar) -> Value {
    serde_json::from_str(&sidecar.ready("?verbose").await.text()).expect("JSON")
}
