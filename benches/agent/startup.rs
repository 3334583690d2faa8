//! Measures how much later Envoy is ready when the agent starts it: the same bootstrap, with and
//! without the agent.

use std::io::Result;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use kit::caller;
use kit::envoy::Version;
use kit::report::{Row, median};
use kit::sidecar::Builder;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use crate::millis;

/// Pause between two readiness requests; a shorter one would slow down the start of Envoy.
const PACE: Duration = Duration::from_millis(5);

/// Returns the medians over `rounds`, and the median of the differences within a round.
pub(crate) async fn measure(rounds: u32) -> Result<Vec<Row>> {
    let (mut with, mut bare) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let began = Instant::now();
        let sidecar = Builder::new(&format!("b-start-{round}")).args(&["--concurrency", "1"]).start();
        while sidecar.ready("").await.status != 200 {
            sleep(PACE).await;
        }
        with.push(millis(began.elapsed()));
        let state = sidecar.folder.join("state");
        sidecar.local("POST /quitquitquit", "").await;
        sidecar.end().await;
        bare.push(millis(alone(&state).await?));
    }
    let later: Vec<f64> = with.iter().zip(&bare).map(|(with, bare)| with - bare).collect();
    Ok(vec![
        Row::new("first LIVE of Envoy alone", median(&bare), "ms"),
        Row::new("first readiness of Envoy started by the agent", median(&with), "ms"),
        Row::new("delay by the agent, in the same round", median(&later), "ms").at_most(300.0),
    ])
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
