//! Measures a tenth of the agents alternating between healthy and unhealthy every half second.

use std::time::Duration;

use kit::process::Process;
use kit::report::Row;
use kit::vm::fleet::{LoadTest, Push};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::{Failure, millis, say};

/// One agent in this number flaps.
const PART: usize = 10;
/// Number of phases over which the flapping agents are spread.
const PHASES: u32 = 50;
/// Time between two flips of the same agent.
const HALF: Duration = Duration::from_millis(500);
/// Limit for the final endpoints to arrive.
const PATIENCE: Duration = Duration::from_secs(30);
const SECOND: Duration = Duration::from_secs(1);

/// Measures the pushes during `span`, and the time until the final endpoints have arrived.
pub(crate) async fn measure(load: &LoadTest, span: Duration) -> Result<Vec<Row>, Failure> {
    say("flapping");
    let agents: Vec<u32> = (0..load.settings.agents).step_by(PART).collect();
    let (server, own) = (load.process(), Process::new(std::process::id()));
    let (before, own_before) = (server.cpu(), own.cpu());
    let begin = Instant::now();
    flap(load, &agents, begin + span).await;
    // Every second agent ends unhealthy.
    for (position, agent) in agents.iter().enumerate() {
        load.fleet.set_healthy(*agent, position % 2 == 0);
    }
    let end = Instant::now();
    let exact = load.until_endpoints_match(PATIENCE).await?;
    let share =
        |after: Duration, before: Duration| (after - before).as_secs_f64() / begin.elapsed().as_secs_f64();
    let (server, own) = (share(server.cpu(), before), share(own.cpu(), own_before));
    let pushes: Vec<Push> =
        load.eds_client.state().pushes.iter().copied().filter(|push| push.at >= begin).collect();
    let mean_bytes = pushes.iter().map(|push| push.bytes).sum::<usize>() / pushes.len().max(1);
    for agent in &agents {
        load.fleet.set_healthy(*agent, true);
    }
    load.until_endpoints_match(PATIENCE).await?;
    let number = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    Ok(vec![
        Row::new("flapping, pushes to a client in a second, maximum", number(most_in_a_second(&pushes)), "")
            .at_most(10.0),
        Row::new("flapping, pushes to a client a second", number(pushes.len()) / span.as_secs_f64(), "/s"),
        Row::new("flapping, mean size of a push", number(mean_bytes) / 1024.0, "KiB"),
        Row::new("flapping, from the end to the exact endpoints", millis(exact - end), "ms").at_most(1000.0),
        Row::new("flapping, CPU time of the server", server, "cores"),
        Row::new("flapping, CPU time of the load generator", own, "cores"),
    ])
}

async fn flap(load: &LoadTest, agents: &[u32], end: Instant) {
    let mut ticks = interval(HALF / PHASES);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut phase = 0;
    while Instant::now() < end {
        ticks.tick().await;
        for agent in agents.iter().skip(phase).step_by(PHASES as usize) {
            load.fleet.set_healthy(*agent, !load.fleet.is_healthy(*agent));
        }
        phase = (phase + 1) % PHASES as usize;
    }
}

/// Returns the highest number of pushes within any second.
fn most_in_a_second(pushes: &[Push]) -> usize {
    let within = |first: &Push| {
        pushes.iter().filter(|push| push.at >= first.at && push.at < first.at + SECOND).count()
    };
    pushes.iter().map(within).max().unwrap_or_default()
}
