//! Clients that occupy connections or handshakes of discovery, or make its pushes expensive, while
//! simulated agents report and an ADS client receives their endpoints.

use std::time::Duration;

use kit::authority::Authority;
use kit::caller::tls::Caller;
use kit::net;
use kit::vm::certificates::DISCOVERY_NAME;
use kit::vm::fleet::{EdsClient, LoadSize, LoadTest, NAMESPACE};
use rustls::ClientConnection;
use tokio::time::{Instant, sleep};

use super::{LIVE, LIVE_BAR, Strength, health_checks, keep_alive};
use crate::addresses;
use crate::hostile::{Attack, HostileClients, Then};
use crate::measurement::{Figures, Measurement, Memory, Phases, Row, Scenario, measure};
use crate::resources::{Peak, Usage};

const SIZE: LoadSize = LoadSize { agents: 60, services: 6, arrivals: 100, heartbeat: Duration::from_secs(5) };
/// The time in which every agent must be connected again after a restart.
const RECONNECTED: Duration = Duration::from_secs(60);
/// The time in which a change of a machine's health must reach the client.
const PUSHED: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);
/// TLS handshakes that the stranger begins per second.
const HANDSHAKES: u32 = 100;
/// Streams that subscribe to names that do not exist, and the names of each.
const STREAMS: usize = 16;
const NAMES: usize = 4096;
/// The names of one more stream, which are above the limit.
const TOO_MANY_NAMES: usize = 65_536;

/// Attacks one discovery server in all ways, one after the other.
///
/// # Errors
/// If the server or its agents do not start.
pub async fn run(
    strength: Strength,
    phases: Phases,
    mut done: impl FnMut(Measurement),
) -> Result<(), String> {
    let mut load = LoadTest::start("attack-discovery", SIZE).await?;
    let monitoring = load.discovery.monitoring();
    let idle = HostileClients {
        sources: addresses(Strength::SOURCES),
        address: monitoring,
        connections: strength.connections,
        per_second: Strength::PER_SECOND,
        tls: None,
        bytes: keep_alive(monitoring, "/metrics"),
        then: Then::Wait,
    };
    let scenario = Scenario {
        name: "discovery 15014, idle keep-alive connections".to_owned(),
        honest: health_checks(net::loopback(), monitoring),
        hostile: vec![idle],
        attacked: vec![pid(&load)],
        bars: vec![(LIVE, LIVE_BAR)],
    };
    done(measure(scenario, phases).await);
    done(unknown_names(&load, phases).await);
    done(reconnections(&mut load, strength).await?);
    Ok(())
}

/// Returns clients without a certificate, of one address, that begin TLS handshakes and do not finish
/// them.
///
/// # Panics
/// If no ClientHello can be written.
pub(crate) fn handshakes(load: &LoadTest, connections: usize, per_second: u32) -> HostileClients {
    let authority = Authority::new().pem();
    let caller = Caller { server: DISCOVERY_NAME, authority: &authority, identity: None };
    let config = caller.connector().config().clone();
    let mut hello = Vec::new();
    let mut client = ClientConnection::new(config, caller.server_name()).expect("a client");
    client.write_tls(&mut hello).expect("a ClientHello");
    HostileClients {
        sources: addresses(1),
        address: load.discovery.secure(),
        connections,
        per_second,
        tls: None,
        bytes: hello,
        then: Then::Wait,
    }
}

/// Restarts discovery before, during and after an attack, and measures when each agent is connected
/// again.
async fn reconnections(load: &mut LoadTest, strength: Strength) -> Result<Measurement, String> {
    let clients = handshakes(load, strength.connections, HANDSHAKES);
    let mut memory = Memory { before: usage(load), ..Memory::default() };
    let before = reconnect(load).await?;
    let attack = Attack::start(vec![clients]);
    let during = reconnect(load).await?;
    memory.most = usage(load);
    let (attempts, most_open) = (attack.attempts(), attack.most_open());
    drop(attack);
    let after = reconnect(load).await?;
    memory.after = usage(load);
    Ok(Measurement {
        name: format!("discovery 15012, {HANDSHAKES} handshakes per second during a restart"),
        rows: vec![row("agents connected again", [before, during, after])],
        examples: load.fleet.stats.failure().into_iter().collect(),
        memory,
        attempts,
        most_open,
    })
}

async fn reconnect(load: &mut LoadTest) -> Result<Figures, String> {
    load.discovery.stop().await;
    let since = load.fleet.stats.now();
    load.discovery.start().await?;
    loop {
        let mut registered = load.fleet.stats.registered();
        registered.retain(|time| *time >= since);
        let missing = u64::from(SIZE.agents) - registered.len() as u64;
        if missing == 0 || load.fleet.stats.now() > since + RECONNECTED {
            let times: Vec<f64> = registered.iter().map(|time| millis(*time - since)).collect();
            return Ok(Figures::of_times(&times, missing));
        }
        sleep(POLL).await;
    }
}

/// Measures how long a change of a machine's health takes to reach a client, while others subscribe to
/// names that do not exist.
async fn unknown_names(load: &LoadTest, phases: Phases) -> Measurement {
    let before = usage(load);
    let peak = Peak::start(vec![pid(load)]);
    let quiet = flips(load, phases.quiet).await;
    let server = load.discovery.plaintext();
    let subscribe = |stream: usize| {
        let names = if stream < STREAMS { NAMES } else { TOO_MANY_NAMES };
        let name = |number| format!("outbound|80||unknown-{stream}-{number}.example.com");
        EdsClient::start(server, NAMESPACE, (0..names).map(name).collect())
    };
    let streams: Vec<EdsClient> = (0..=STREAMS).map(subscribe).collect();
    let during = flips(load, phases.attack).await;
    let open = streams.len() as u64;
    drop(streams);
    let after = flips(load, phases.quiet).await;
    Measurement {
        name: format!("discovery, {STREAMS} streams with {NAMES} unknown names, one with {TOO_MANY_NAMES}"),
        rows: vec![row("endpoint changes", [quiet, during, after])],
        examples: Vec::new(),
        memory: Memory { before, most: peak.memory(), after: usage(load) },
        attempts: open,
        most_open: open,
    }
}

/// Changes the health of one machine after the other for this long.
async fn flips(load: &LoadTest, span: Duration) -> Figures {
    let begin = Instant::now();
    let (mut times, mut lost) = (Vec::new(), 0);
    for agent in (0..SIZE.agents).cycle() {
        for healthy in [false, true] {
            let started = Instant::now();
            load.fleet.set_healthy(agent, healthy);
            match load.until_endpoints_match(PUSHED).await {
                Ok(at) => times.push(millis(at - started)),
                Err(_) => lost += 1,
            }
        }
        if begin.elapsed() >= span {
            break;
        }
    }
    Figures::of_times(&times, lost)
}

fn row(name: &str, phases: [Figures; 3]) -> Row {
    Row { name: name.to_owned(), phases, bar: None }
}

fn pid(load: &LoadTest) -> u32 {
    load.discovery.pid().as_raw().unsigned_abs()
}

fn usage(load: &LoadTest) -> u64 {
    Usage::of_all(&[pid(load)]).memory
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
