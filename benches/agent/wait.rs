//! Measures how soon the command `wait` returns after readiness, and how long it takes when the
//! application need not wait.

use std::io::{Error, Result};
use std::time::Duration;

use kit::admin::{Mood, ScriptedAdmin};
use kit::agent;
use kit::report::{Row, quantile};
use kit::sidecar::{Builder, Sidecar};
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use crate::{READY, millis};

/// Time for which `wait` runs before Envoy becomes ready. It grows a little in each run, so that it
/// does not coincide with the agent's polling interval.
const WAITS: Duration = Duration::from_millis(50);

/// Returns p99 of both durations.
pub(crate) async fn measure(waits: u32) -> Result<Vec<Row>> {
    let admin = ScriptedAdmin::start(Mood::Starts, String::new()).await;
    let mut after_readiness = Vec::new();
    for number in 0..waits {
        admin.set(Mood::Starts);
        let sidecar = Builder::bare("b-wait").watching(admin.address).start_plain();
        sidecar.until(503, "workers not started").await;
        let mut waiting = command(&sidecar).spawn()?;
        sleep(WAITS + Duration::from_micros(517) * (number % 100)).await;
        admin.set(Mood::Serves);
        let status = waiting.wait().await?;
        let ended = Instant::now();
        let told = admin.take_started().filter(|_| status.success());
        let told = told.ok_or_else(|| Error::other(format!("wait exited with {status}")))?;
        after_readiness.push(millis(ended - told));
    }
    let ready = Builder::bare("b-ready").watching(admin.address).start_plain();
    ready.until(200, "ready").await;
    let mut whole = Vec::new();
    for _ in 0..waits {
        let began = Instant::now();
        let status = command(&ready).spawn()?.wait().await?;
        whole.push(millis(began.elapsed()));
        if !status.success() {
            return Err(Error::other(format!("wait exited with {status}")));
        }
    }
    let row = |name: String, times: &[f64]| Row::new(name, quantile(times, 0.99), "ms").at_most(10.0);
    Ok(vec![
        row(format!("wait returns after readiness, p99 of {waits}"), &after_readiness),
        row(format!("wait when ready already, whole process, p99 of {waits}"), &whole),
    ])
}

fn command(sidecar: &Sidecar) -> Command {
    let url = format!("http://{}{READY}", sidecar.ready_address());
    agent::command(&["wait", "--timeoutSeconds", "30", "--url", &url])
}
