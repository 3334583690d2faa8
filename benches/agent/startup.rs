//! How much later an Envoy is ready that the agent starts: the bootstrap of the same run, with and without the agent.

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

/// Between two questions: more of them would be a burden to an Envoy that starts.
const PACE: Duration = Duration::from_millis(5);

/// Medians of `rounds`, and of the differences in each.
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
        Row::new("first LIVE of Envoy by itself", median(&bare), "ms"),
        Row::new("first readiness of Envoy by the agent", median(&with), "ms"),
        Row::new("later, in the same round", median(&later), "ms").at_most(300.0),
    ])
}

/// Envoy without the agent, by what that has left behind.
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
