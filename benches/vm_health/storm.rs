//! Measures a kill and restart of the server, after which all agents reconnect.

use std::time::Duration;

use kit::process::Process;
use kit::report::{Row, quantile};
use kit::vm::fleet::LoadTest;
use tokio::time::sleep;

use crate::{Failure, say};

/// Time for which endpoints are observed after the last reconnection.
const AFTERWARDS: Duration = Duration::from_secs(5);

/// The server is down for `outage`. Times count from the moment at which it is ready again.
pub(crate) async fn measure(load: &mut LoadTest, outage: Duration) -> Result<Vec<Row>, Failure> {
    let name = format!("storm after {} s down", outage.as_secs());
    say(&name);
    let stats = load.fleet.stats.clone();
    load.discovery.kill().await;
    let killed = stats.now();
    sleep(outage).await;
    let removals = load.eds_client.state().removals.len();
    stats.take_attempts();
    stats.take_connections();
    let own = Process::new(std::process::id());
    let own_before = own.cpu();
    let restarted = stats.now();
    load.discovery.start().await?;
    let ready = stats.now();
    let back = load.until_registered(killed).await?;
    let (server, own) = (load.process().cpu(), own.cpu() - own_before);
    let took = stats.now() - restarted;
    sleep(AFTERWARDS).await;
    load.until_endpoints_match(AFTERWARDS).await?;
    let lost: usize = load.eds_client.state().removals.iter().skip(removals).map(|shrink| shrink.lost).sum();
    let back: Vec<f64> = back.iter().map(|time| time.saturating_sub(ready).as_secs_f64()).collect();
    let attempts = Rate::of(&stats.take_attempts(), restarted);
    let connections = Rate::of(&stats.take_connections(), restarted);
    let share = |cpu: Duration| cpu.as_secs_f64() / took.as_secs_f64();
    let number = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    Ok(vec![
        Row::new(format!("{name}, reconnected, median"), quantile(&back, 0.5), "s"),
        Row::new(format!("{name}, reconnected, p99"), quantile(&back, 0.99), "s").at_most(60.0),
        Row::new(format!("{name}, reconnected, last"), quantile(&back, 1.0), "s"),
        Row::new(
            format!("{name}, attempts of an agent, mean"),
            attempts.all / f64::from(load.settings.agents),
            "",
        ),
        Row::new(format!("{name}, attempts in a second, maximum"), attempts.peak, "/s"),
        Row::new(format!("{name}, connections accepted in a second, maximum"), connections.peak, "/s"),
        Row::new(
            format!("{name}, connections accepted in a second, maximum / mean"),
            connections.peak / connections.mean,
            "",
        )
        .at_most(2.0),
        Row::new(format!("{name}, endpoints lost"), number(lost), "").at_most(0.0),
        Row::new(format!("{name}, CPU time of the server"), share(server), "cores"),
        Row::new(format!("{name}, CPU time of the load generator"), share(own), "cores"),
    ])
}

/// Frequency of an event, per second.
struct Rate {
    all: f64,
    /// The highest count within any second since the start.
    peak: f64,
    /// The mean from the first event to the last, over at least a second.
    mean: f64,
}

impl Rate {
    fn of(times: &[Duration], start: Duration) -> Self {
        let mut seconds: Vec<u32> = Vec::new();
        for time in times {
            let second = usize::try_from(time.saturating_sub(start).as_secs()).expect("some minutes");
            if seconds.len() <= second {
                seconds.resize(second + 1, 0);
            }
            seconds[second] += 1;
        }
        let all = f64::from(seconds.iter().sum::<u32>());
        let span = times
            .iter()
            .max()
            .zip(times.iter().min())
            .map_or(0.0, |(last, first)| (*last - *first).as_secs_f64());
        let peak = seconds.iter().max().copied().map_or(0.0, f64::from);
        Self { all, peak, mean: all / span.max(1.0) }
    }
}
