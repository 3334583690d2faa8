//! Measures how much later Envoy is ready when the agent starts it: the same bootstrap, with and
//! without the agent.

use std::io::Result;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use kit::caller;
use kit::envoy::Version;
use kit::quiet_rounds::QuietRounds;
use kit::report::{Row, median, median_ratio};
use kit::sidecar::Builder;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use crate::millis;

/// Pause between two readiness requests; a shorter one would slow down the start of Envoy.
const PACE: Duration = Duration::from_millis(5);

/// Returns the medians over `rounds`, and the median of the differences within a round.
pub(crate) async fn measure(quiet: &mut QuietRounds, rounds: u32) -> Result<Vec<Row>> {
    let (mut with, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (with_agent, alone) = quiet.round(round).await?;
        with.push(millis(with_agent));
        bare.push(millis(alone));
    }
    let later: Vec<f64> = with.iter().zip(&bare).map(|(with, bare)| with - bare).collect();
    Ok(vec![
        Row::new("first LIVE of Envoy alone", median(&bare), "ms"),
        Row::new("first readiness of Envoy started by the agent", median(&with), "ms"),
        Row::new("first readiness, by the agent / Envoy alone", median_ratio(&with, &bare), "ratio"),
        Row::new("delay by the agent, in the same round", median(&later), "ms").at_most(300.0),
    ])
}

/// Starts Envoy by the agent, and then alone.
async fn round() -> Result<(Duration, Duration)> {
    let began = Instant::now();
    let sidecar = Builder::new("b-start").args(&["--concurrency", "1"]).start();
    while sidecar.ready("").await.status != 200 {
        sleep(PACE).await;
    }
    let with_agent = began.elapsed();
    let state = sidecar.folder.join("state");
    sidecar.local("POST /quitquitquit", "").await;
    sidecar.end().await;
    Ok((with_agent, alone(&state).await?))
}

/// Starts Envoy without the agent, with the bootstrap that the agent left in `state`.
async fn alone(state: &Path) -> Result<Duration> {
    let socket = state.join("admin.sock");
    let _ = std::fs::remove_file(&socket);
    let began = Instant::now();
    let mut envoy = Command::new(Version::Newest.binary())
        .arg("-c")
        .arg(state.join("envoy.json"))
        .args(["--disable-hot-restart", "--concurrency", "1", "--log-level", "warning"])
        .args(["--drain-strategy", "immediate", "--drain-time-s", "25"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    while !caller::get_unix(&socket, "/ready").await.is_ok_and(|answer| answer == "LIVE\n") {
        sleep(PACE).await;
    }
    let took = began.elapsed();
    envoy.kill().await?;
    Ok(took)
}
