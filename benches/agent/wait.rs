//! Measures how soon the command `wait` returns after readiness, and how long it takes when the
//! application need not wait, compared with the start of an empty process.

use std::io::{Error, Result};
use std::process::Stdio;
use std::time::Duration;

use kit::admin::{Mood, ScriptedAdmin};
use kit::agent;
use kit::quiet_rounds::QuietRounds;
use kit::report::{Row, median, median_ratio, quantile};
use kit::sidecar::{Builder, Sidecar};
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use crate::{READY, millis};

/// Time for which `wait` runs before Envoy becomes ready. It grows a little in each run, so that it
/// does not coincide with the agent's polling interval.
const WAITS: Duration = Duration::from_millis(50);
/// The limit of p99, in milliseconds.
const BAR: f64 = 10.0;

/// The durations of one round, in milliseconds.
struct Times {
    /// The time from readiness to the exit of `wait`.
    after_readiness: Vec<f64>,
    /// The whole process, if the agent is ready already.
    whole: Vec<f64>,
    /// The start of an empty process, measured in turn with the command.
    empty: Vec<f64>,
}

/// Measures `waits` runs of each kind in each round.
pub(crate) async fn measure(quiet: &mut QuietRounds, rounds: u32, waits: u32) -> Result<Vec<Row>> {
    let mut measured = Vec::new();
    for _ in 0..rounds {
        measured.push(quiet.round(async || round(waits).await).await?);
    }
    let medians = |pick: fn(&Times) -> &[f64]| -> Vec<f64> {
        measured.iter().map(|times| median(pick(times))).collect()
    };
    // A round is too short for its own p99.
    let p99 = |pick: fn(&Times) -> &[f64]| {
        quantile(&measured.iter().flat_map(pick).copied().collect::<Vec<_>>(), 0.99)
    };
    let (whole, empty) = (medians(|times| &times.whole), medians(|times| &times.empty));
    let after_readiness = p99(|times| &times.after_readiness);
    let [whole_p99, empty_p99] = [p99(|times| &times.whole), p99(|times| &times.empty)];
    let name = "wait when ready already, whole process";
    Ok(vec![
        Row::new("wait returns after readiness, p99", after_readiness, "ms").at_most(BAR),
        Row::new("start of an empty process, p50", median(&empty), "ms"),
        Row::new("start of an empty process, p99", empty_p99, "ms"),
        Row::new(format!("{name}, p50"), median(&whole), "ms"),
        Row::new(format!("{name}, p50 / an empty process"), median_ratio(&whole, &empty), "ratio"),
        Row::new(format!("{name}, p99"), whole_p99, "ms").at_most(BAR),
        Row::new(format!("{name}, p99 / an empty process"), whole_p99 / empty_p99, "ratio"),
    ])
}

async fn round(waits: u32) -> Result<Times> {
    let admin = ScriptedAdmin::start(Mood::Starts, String::new()).await;
    let mut times = Times { after_readiness: Vec::new(), whole: Vec::new(), empty: Vec::new() };
    for number in 0..waits {
        admin.set(Mood::Starts);
        let sidecar = Builder::bare("b-wait").watching(admin.address).start_plain();
        sidecar.until(503, "workers not started").await;
        let mut waiting = wait(&sidecar).spawn()?;
        sleep(WAITS + Duration::from_micros(517) * (number % 100)).await;
        admin.set(Mood::Serves);
        let status = waiting.wait().await?;
        let ended = Instant::now();
        let told = admin.take_started().filter(|_| status.success());
        let told = told.ok_or_else(|| Error::other(format!("wait exited with {status}")))?;
        times.after_readiness.push(millis(ended - told));
    }
    let ready = Builder::bare("b-ready").watching(admin.address).start_plain();
    ready.until(200, "ready").await;
    for _ in 0..waits {
        times.whole.push(run(wait(&ready)).await?);
        times.empty.push(run(empty()).await?);
    }
    Ok(times)
}

/// Returns the duration of a process in milliseconds.
async fn run(mut command: Command) -> Result<f64> {
    let began = Instant::now();
    let status = command.spawn()?.wait().await?;
    let took = millis(began.elapsed());
    if status.success() { Ok(took) } else { Err(Error::other(format!("{command:?} exited with {status}"))) }
}

fn wait(sidecar: &Sidecar) -> Command {
    let url = format!("http://{}{READY}", sidecar.ready_address());
    agent::command(&["wait", "--timeoutSeconds", "30", "--url", &url])
}

/// Returns a process that does nothing, started as the agent is.
fn empty() -> Command {
    let mut command = Command::new("/bin/true");
    command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}
