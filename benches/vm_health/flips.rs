//! Measures the time from the probe that reaches the threshold until a real Envoy has lost, or
//! regained, the endpoint.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use kit::app::switched::Behavior;
use kit::envoy;
use kit::net;
use kit::quiet_rounds::QuietRounds;
use kit::report::{Row, median, quantile};
use kit::vm::certificates::{Authority, DISCOVERY_NAME};
use kit::vm::discovery::Discovery;
use kit::vm::documents::{GROUP, NAMESPACE, group, probe, service};
use kit::vm::envoy_client::{EnvoyClient, Subscription};
use kit::vm::machine::Machine;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::{Failure, millis, say};

const ROUNDS: u32 = 5;
/// Number of machines that flip at the same time.
const MACHINES: u32 = 4;
/// Pause between two polls of Envoy.
const PACE: Duration = Duration::from_millis(1);
/// Limit for a flip to take effect.
const PATIENCE: Duration = Duration::from_secs(30);

/// The endpoints in Envoy, and the time of the poll.
type Seen = (Instant, BTreeSet<SocketAddr>);

/// Returns the median and p99 of `flips` flips of each kind, in several rounds.
pub(crate) async fn measure(quiet: &mut QuietRounds, flips: u32) -> Result<Vec<Row>, Failure> {
    say("flips");
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        times.extend(quiet.round(async || round(flips.div_ceil(ROUNDS)).await).await?);
    }
    let (gone, back): (Vec<_>, Vec<_>) = times.into_iter().unzip();
    Ok([("gone from Envoy", gone), ("back in Envoy", back)]
        .into_iter()
        .flat_map(|(name, times)| rows(name, &times))
        .collect())
}

/// Returns a pair for each flip, as [`flip`] does, of all machines.
async fn round(flips: u32) -> Result<Vec<(f64, f64)>, Failure> {
    let folder = envoy::folder("b-flips");
    let authority = Authority::new();
    let files = authority.issue(&folder, "discovery", DISCOVERY_NAME);
    let workload = authority.workload(&folder, GROUP, NAMESPACE, GROUP);
    let mut discovery = Discovery::new(&folder, &[group(&probe()), service()]).tls(&files);
    discovery.start().await?;
    let client =
        EnvoyClient::start(&folder, "client", net::loopback(), &Subscription::sotw(discovery.plaintext()))
            .await;
    let mut machines = Vec::new();
    for number in 0..MACHINES {
        let mut machine = Machine::new(&folder, &format!("m{number}"), net::loopback()).await;
        machine.report_tls(&discovery, &workload);
        machine.start_agent()?;
        machines.push(machine);
        // Staggers the machines, so that their probes run at different times.
        sleep(Duration::from_secs(1) / MACHINES).await;
    }
    let (sender, seen) = watch::channel((Instant::now(), BTreeSet::new()));
    let looking = look(&client, sender);
    let flipping = futures_util::future::try_join_all(
        machines.iter().map(|machine| flip(machine, seen.clone(), flips.div_ceil(MACHINES))),
    );
    let times = tokio::select! {
        times = flipping => times?,
        () = looking => return Err("Envoy exited".into()),
    };
    Ok(times.into_iter().flatten().collect())
}

fn rows(name: &str, times: &[f64]) -> [Row; 3] {
    let name = format!("threshold reached -> {name}");
    [
        Row::new(format!("{name}, median"), median(times), "ms").at_most(60.0),
        Row::new(format!("{name}, p99"), quantile(times, 0.99), "ms").at_most(1000.0),
        Row::new(format!("{name}, slowest"), quantile(times, 1.0), "ms"),
    ]
}

async fn look(client: &EnvoyClient, seen: watch::Sender<Seen>) {
    loop {
        let endpoints = client.endpoints().await;
        // The time is taken after the response, which can only overstate the latency.
        seen.send_replace((Instant::now(), endpoints));
        sleep(PACE).await;
    }
}

/// Returns a pair for each flip, in milliseconds: until the endpoint is removed, and until it is
/// back.
async fn flip(
    machine: &Machine,
    mut seen: watch::Receiver<Seen>,
    flips: u32,
) -> Result<Vec<(f64, f64)>, Failure> {
    until(machine, &mut seen, true).await?;
    let mut times = Vec::new();
    for _ in 0..flips {
        let gone = turn(machine, &mut seen, Behavior::Failing).await?;
        let back = turn(machine, &mut seen, Behavior::Serving).await?;
        times.push((gone, back));
    }
    Ok(times)
}

async fn turn(
    machine: &Machine,
    seen: &mut watch::Receiver<Seen>,
    behavior: Behavior,
) -> Result<f64, Failure> {
    machine.application.set_behavior(behavior);
    let at = until(machine, seen, behavior == Behavior::Serving).await?;
    let probes = machine.application.probes();
    let first = probes.first().ok_or("an endpoint changed without a probe")?;
    Ok(millis(at - *first))
}

async fn until(machine: &Machine, seen: &mut watch::Receiver<Seen>, there: bool) -> Result<Instant, Failure> {
    let endpoint = machine.application.address;
    let found =
        timeout(PATIENCE, seen.wait_for(|(_, endpoints)| endpoints.contains(&endpoint) == there)).await;
    match found {
        Ok(Ok(seen)) => Ok(seen.0),
        Ok(Err(_)) | Err(_) => Err(format!("{endpoint} is not {there} in Envoy:\n{}", machine.log()).into()),
    }
}
