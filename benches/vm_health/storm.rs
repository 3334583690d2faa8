//! The server is killed and started again, and everybody comes back.

use std::time::Duration;

use kit::process::Process;
use kit::report::{Row, quantile};
use kit::vm::fleet::Crowd;
use tokio::time::sleep;

use crate::{Failure, say};

/// After the last one is back, endpoints are watched for so long.
const AFTERWARDS: Duration = Duration::from_secs(5);

/// With the server away for `outage`. Times are from the moment at which it is ready again.
pub(crate) async fn measure(crowd: &mut Crowd, outage: Duration) -> Result<Vec<Row>, Failure> {
    let name = format!("storm after {} s away", outage.as_secs());
    say(&name);
    let tally = crowd.fleet.tally.clone();
    crowd.discovery.kill().await;
    let killed = tally.now();
    sleep(outage).await;
    let shrinks = crowd.observer.sets().shrinks.len();
    tally.take_attempts();
    tally.take_connections();
    let load = Process::new(std::process::id());
    let load_before = load.cpu();
    let restarted = tally.now();
    crowd.discovery.start().await?;
    let ready = tally.now();
    let back = crowd.until_registered(killed).await?;
    let (server, load) = (crowd.process().cpu(), load.cpu() - load_before);
    let took = tally.now() - restarted;
    sleep(AFTERWARDS).await;
    crowd.until_exact(AFTERWARDS).await?;
    let lost: usize = crowd.observer.sets().shrinks.iter().skip(shrinks).map(|shrink| shrink.lost).sum();
    let back: Vec<f64> = back.iter().map(|time| time.saturating_sub(ready).as_secs_f64()).collect();
    let attempts = Rate::of(&tally.take_attempts(), restarted);
    let connections = Rate::of(&tally.take_connections(), restarted);
    let share = |cpu: Duration| cpu.as_secs_f64() / took.as_secs_f64();
    let number = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    Ok(vec![
        Row::new(format!("{name}, back, median"), quantile(&back, 0.5), "s"),
        Row::new(format!("{name}, back, p99"), quantile(&back, 0.99), "s").at_most(60.0),
        Row::new(format!("{name}, back, the last"), quantile(&back, 1.0), "s"),
        Row::new(
            format!("{name}, attempts of an agent, mean"),
            attempts.all / f64::from(crowd.plan.agents),
            "",
        ),
        Row::new(format!("{name}, attempts in a second, the most"), attempts.peak, "/s"),
        Row::new(format!("{name}, connections taken in a second, the most"), connections.peak, "/s"),
        Row::new(
            format!("{name}, connections taken in a second, the most / the mean"),
            connections.peak / connections.mean,
            "",
        )
        .at_most(2.0),
        Row::new(format!("{name}, endpoints lost"), number(lost), "").at_most(0.0),
        Row::new(format!("{name}, processor time of the server"), share(server), "cores"),
        Row::new(format!("{name}, processor time of the load"), share(load), "cores"),
    ])
}

/// How often something happened.
struct Rate {
    all: f64,
    /// In the worst of the seconds since the start.
    peak: f64,
    /// From the first to the last, at least a second.
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
