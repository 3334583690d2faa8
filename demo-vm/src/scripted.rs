//! The scripted demo: one failure of each kind, and the time that Envoy took to follow.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use super::demo::Demo;
use kit::app::switched::Behavior;
use kit::terminal::say;
use kit::wait;

/// As in the WorkloadGroup: the number of consecutive failures or successes that change the health.
const FAILURES: usize = 2;
const SUCCESSES: usize = 1;

/// Runs every step once and returns whether Envoy followed each time.
pub async fn run(demo: &mut Demo, begin: Instant) -> bool {
    let right = all(demo, begin).await;
    if right.is_none() {
        say(&format!(
            "Envoy did not follow within {} s; the logs: {}\n",
            wait::timeout().as_secs(),
            demo.folder.display()
        ));
        return false;
    }
    let counts = demo.traffic.take();
    let count = |is_wanted: fn(u16) -> bool| -> u64 {
        counts.iter().filter(|((status, _), _)| is_wanted(*status)).map(|(_, count)| count).sum()
    };
    let (served, failed) = (count(|status| status == 200), count(|status| status != 200));
    say(&format!("requests through Envoy during the demo: {served} succeeded, {failed} failed\n"));
    served > 0
}

async fn all(demo: &mut Demo, begin: Instant) -> Option<()> {
    until(demo, &[0, 1, 2], begin).await?;
    demo.traffic.take();
    line("everything runs, Envoy has three endpoints", begin, None);

    let done = behave(demo, 1, Behavior::Failing);
    let gone = until(demo, &[0, 2], done).await?;
    line("the application of payments-2 responds with 503: removed", done, verdict(demo, 1, FAILURES, gone));
    let done = behave(demo, 1, Behavior::Serving);
    let back = until(demo, &[0, 1, 2], done).await?;
    line("it is healthy again: added", done, verdict(demo, 1, SUCCESSES, back));

    let done = behave(demo, 0, Behavior::Hanging);
    until(demo, &[1, 2], done).await?;
    line("the application of payments-1 hangs: removed", done, None);
    let done = behave(demo, 0, Behavior::Serving);
    let back = until(demo, &[0, 1, 2], done).await?;
    line("it responds again: added", done, verdict(demo, 0, SUCCESSES, back));

    let done = Instant::now();
    demo.machines[2].kill_agent().await;
    until(demo, &[0, 1], done).await?;
    line("agent of payments-3 killed: removed after grace period", done, None);
    let done = Instant::now();
    demo.machines[2].start_agent().ok()?;
    until(demo, &[0, 1, 2], done).await?;
    line("agent started again: added", done, None);
    Some(())
}

fn behave(demo: &Demo, machine: usize, behavior: Behavior) -> Instant {
    demo.machines[machine].application.set_behavior(behavior);
    Instant::now()
}

/// Waits until Envoy's endpoints are those of `machines` and returns the time.
async fn until(demo: &Demo, machines: &[usize], since: Instant) -> Option<Instant> {
    let wanted: BTreeSet<_> =
        machines.iter().map(|machine| demo.machines[*machine].application.address).collect();
    while since.elapsed() < wait::timeout() {
        if demo.client.endpoints().await == wanted {
            return Some(Instant::now());
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    None
}

/// Returns the time between the response that changed the health and the update of Envoy.
fn verdict(demo: &Demo, machine: usize, threshold: usize, followed: Instant) -> Option<Duration> {
    let probes = demo.machines[machine].application.probes();
    Some(followed.saturating_duration_since(*probes.get(threshold.checked_sub(1)?)?))
}

fn line(what: &str, since: Instant, verdict: Option<Duration>) {
    let verdict = verdict.map_or_else(String::new, |verdict| {
        format!("  {:4} ms after the probe that changed the health", verdict.as_millis())
    });
    say(&format!("  {what:<56} {:6.2} s{verdict}\n", since.elapsed().as_secs_f64()));
}
