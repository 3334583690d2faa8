//! The scripted demo: one failure of each kind, and the time that Envoy took to follow.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use super::stage::Stage;
use kit::app::switched::Behaviour;
use kit::terminal::say;
use kit::vm::wait::TIMEOUT;

/// As in the WorkloadGroup: the number of consecutive failures or successes that change the health.
const FAILURES: usize = 2;
const SUCCESSES: usize = 1;

/// Runs every step once and returns whether Envoy followed each time.
pub async fn run(stage: &mut Stage, begin: Instant) -> bool {
    let right = all(stage, begin).await;
    if right.is_none() {
        say(&format!(
            "Envoy did not follow within {} s; the logs: {}\n",
            TIMEOUT.as_secs(),
            stage.folder.display()
        ));
        return false;
    }
    let tally = stage.traffic.take();
    let count = |is_wanted: fn(u16) -> bool| -> u64 {
        tally.iter().filter(|((status, _), _)| is_wanted(*status)).map(|(_, count)| count).sum()
    };
    let (served, failed) = (count(|status| status == 200), count(|status| status != 200));
    say(&format!("requests through Envoy during the demo: {served} succeeded, {failed} failed\n"));
    served > 0
}

async fn all(stage: &mut Stage, begin: Instant) -> Option<()> {
    until(stage, &[0, 1, 2], begin).await?;
    stage.traffic.take();
    line("everything runs, Envoy has three endpoints", begin, None);

    let done = behave(stage, 1, Behaviour::Failing);
    let gone = until(stage, &[0, 2], done).await?;
    line("the application of payments-2 responds with 503: removed", done, verdict(stage, 1, FAILURES, gone));
    let done = behave(stage, 1, Behaviour::Serving);
    let back = until(stage, &[0, 1, 2], done).await?;
    line("it is healthy again: added", done, verdict(stage, 1, SUCCESSES, back));

    let done = behave(stage, 0, Behaviour::Hanging);
    until(stage, &[1, 2], done).await?;
    line("the application of payments-1 hangs: removed", done, None);
    let done = behave(stage, 0, Behaviour::Serving);
    let back = until(stage, &[0, 1, 2], done).await?;
    line("it responds again: added", done, verdict(stage, 0, SUCCESSES, back));

    let done = Instant::now();
    stage.machines[2].kill_agent().await;
    until(stage, &[0, 1], done).await?;
    line("agent of payments-3 killed: removed after grace period", done, None);
    let done = Instant::now();
    stage.machines[2].start_agent().ok()?;
    until(stage, &[0, 1, 2], done).await?;
    line("agent started again: added", done, None);
    Some(())
}

fn behave(stage: &Stage, machine: usize, behaviour: Behaviour) -> Instant {
    stage.machines[machine].application.behave(behaviour);
    Instant::now()
}

/// Waits until Envoy's endpoints are those of `machines` and returns the time.
async fn until(stage: &Stage, machines: &[usize], since: Instant) -> Option<Instant> {
    let wanted: BTreeSet<_> =
        machines.iter().map(|machine| stage.machines[*machine].application.address).collect();
    while since.elapsed() < TIMEOUT {
        if stage.client.endpoints().await == wanted {
            return Some(Instant::now());
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    None
}

/// Returns the time between the response that changed the health and the update of Envoy.
fn verdict(stage: &Stage, machine: usize, threshold: usize, followed: Instant) -> Option<Duration> {
    let probes = stage.machines[machine].application.probes();
    Some(followed.saturating_duration_since(*probes.get(threshold.checked_sub(1)?)?))
}

fn line(what: &str, since: Instant, verdict: Option<Duration>) {
    let verdict = verdict.map_or_else(String::new, |verdict| {
        format!("  {:4} ms after the probe that changed the health", verdict.as_millis())
    });
    say(&format!("  {what:<56} {:6.2} s{verdict}\n", since.elapsed().as_secs_f64()));
}
