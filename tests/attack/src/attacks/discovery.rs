//! Clients that occupy connections or handshakes of discovery, or make its pushes expensive, while
//! simulated agents report and an ADS client receives their endpoints.

mod certificate_holders;
mod one_network;

use std::sync::Arc;
use std::time::Duration;

use kit::authority::Authority;
use kit::caller::tls::Caller;
use kit::net;
use kit::vm::certificates::DISCOVERY_NAME;
use kit::vm::discovery::Discovery;
use kit::vm::fleet::{EdsClient, LoadSize, LoadTest, NAMESPACE, cluster};
use rustls::ClientConnection;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::http::HttpListener;
use super::{LIVE, LIVE_BAR, Strength, health_checks, keep_alive, of_size, web_page};
use crate::addresses;
use crate::container::Container;
use crate::cost::{Attacked, Cost, Meter};
use crate::honest::HonestClient;
use crate::hostile::{Attack, HostileClients, Then};
use crate::measurement::{Figures, Measurement, Phases, Row, Scenario, measure};
use crate::newcomer::{Kind, Newcomer};

const SIZE: LoadSize = LoadSize { agents: 60, services: 6, arrivals: 100, heartbeat: Duration::from_secs(5) };
/// The time in which every agent must be connected again after a restart.
const RECONNECTED: Duration = Duration::from_secs(60);
/// The time in which a change of a machine's health must reach the client.
const PUSHED: Duration = Duration::from_secs(10);
/// The services of a tenant.
const TENANT_SERVICES: u32 = 100;
const POLL: Duration = Duration::from_millis(20);
/// TLS handshakes that the stranger begins per second.
const HANDSHAKES: u32 = 100;
/// Streams that subscribe to names that do not exist, and the names of each.
const STREAMS: usize = 16;
const NAMES: usize = 4096;
/// The memory limit of the shipped Deployment, in bytes.
const LIMIT: u64 = 1536 << 20;
/// The listener with TLS.
const SECURE: &str = "discovery 15012";
const MONITORING: &str = "discovery 15014";
const PLAINTEXT: &str = "discovery 15010";
const ENVOYS: &str = "new Envoys";
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
    let container = Container::new("attack-discovery", LIMIT);
    let mut load = LoadTest::start("attack-discovery", SIZE).await?;
    monitoring(&load, strength, phases, &mut done).await;
    reconnect(&mut load).await?;
    done(tenant(&load, phases).await);
    done(reconnections(&mut load, strength).await?);
    done(unknown_names(&load, phases).await);
    plaintext(&load, strength, phases, &mut done).await;
    for many in [false, true] {
        reconnect(&mut load).await?;
        certificate_holders::run(&load, many, strength, phases, &mut done).await;
    }
    drop((load, container));
    one_network::run(phases, &mut done).await
}

/// Attacks the monitoring port.
async fn monitoring(load: &LoadTest, strength: Strength, phases: Phases, mut done: impl FnMut(Measurement)) {
    let attacked = attacked(&load.discovery);
    let attacks =
        [false, true].map(|many| of_size(monitoring_attacks(load, strength), many, |(_, hostile)| hostile));
    for (attack, hostile) in attacks.into_iter().flatten() {
        let honest = health_checks(net::loopback(), load.discovery.monitoring());
        done(measure(scenario(MONITORING, attack, honest, Vec::new(), hostile, &attacked), phases).await);
    }
    let targets = [("POST", "/debug/workloads/release"), ("GET", "/debug/workloads"), ("GET", "/")];
    let pages = web_page::requests(load.discovery.monitoring(), &targets);
    done(measure(scenario(MONITORING, "web pages", pages, Vec::new(), Vec::new(), &attacked), phases).await);
}

fn monitoring_attacks(load: &LoadTest, strength: Strength) -> Vec<(&'static str, Vec<HostileClients>)> {
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
    let mut attacks = HttpListener::get(monitoring, "/metrics").attacks(strength);
    attacks.push(("idle keep-alive connections", vec![idle]));
    attacks
}

fn attacked(discovery: &Discovery) -> Arc<Attacked> {
    let log = discovery.folder.join("discovery.log");
    Arc::new(Attacked::new(vec![("discovery", discovery.pid().as_raw().unsigned_abs())], log, LIMIT))
}

fn scenario(
    listener: &str,
    attack: &str,
    honest: Vec<HonestClient>,
    newcomers: Vec<Newcomer>,
    hostile: Vec<HostileClients>,
    attacked: &Arc<Attacked>,
) -> Scenario {
    Scenario {
        listener: listener.to_owned(),
        attack: attack.to_owned(),
        honest,
        newcomers,
        hostile,
        attacked: Arc::clone(attacked),
        bars: vec![(LIVE, LIVE_BAR)],
    }
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
    let (before, _) = reconnect(load).await?;
    let attack = Attack::start(vec![clients]);
    let (during, cost) = reconnect(load).await?;
    let (attempts, most_open) = (attack.attempts(), attack.most_open());
    drop(attack);
    let (after, _) = reconnect(load).await?;
    Ok(Measurement {
        listener: SECURE.to_owned(),
        attack: format!("{HANDSHAKES} handshakes per second during a restart"),
        rows: vec![row("agents connected again", [before, during, after])],
        examples: load.fleet.stats.failure().into_iter().collect(),
        cost,
        attempts,
        most_open,
    })
}

async fn reconnect(load: &mut LoadTest) -> Result<(Figures, Cost), String> {
    load.discovery.stop().await;
    let since = load.fleet.stats.now();
    load.discovery.start().await?;
    let attacked = attacked(&load.discovery);
    let meter = Meter::start(&attacked);
    loop {
        let mut registered = load.fleet.stats.registered();
        registered.retain(|time| *time >= since);
        let missing = u64::from(SIZE.agents) - registered.len() as u64;
        if missing == 0 || load.fleet.stats.now() > since + RECONNECTED {
            let times: Vec<f64> = registered.iter().map(|time| millis(*time - since)).collect();
            return Ok((Figures::of_times(&times, missing), meter.cost()));
        }
        sleep(POLL).await;
    }
}

/// Attacks the port in plaintext, whose clients are processes on the machine of discovery.
async fn plaintext(load: &LoadTest, strength: Strength, phases: Phases, mut done: impl FnMut(Measurement)) {
    let attacked = attacked(&load.discovery);
    let ads = certificate_holders::ads(load.discovery.plaintext(), None);
    for (attack, hostile) in [
        ("HTTP/2 without a window, resets, endless heads, pings", certificate_holders::http2(&ads, strength)),
        ("heads and bodies that never end", ads.endless(strength)),
    ] {
        let newcomers = vec![Newcomer::new(ENVOYS, Kind::Envoy, &load.settings)];
        let honest = health_checks(net::loopback(), load.discovery.monitoring());
        done(measure(scenario(PLAINTEXT, attack, honest, newcomers, hostile, &attacked), phases).await);
    }
}

/// Measures how long a change of a machine's health takes to reach a client, while others subscribe to
/// names that do not exist.
async fn unknown_names(load: &LoadTest, phases: Phases) -> Measurement {
    let attacked = attacked(&load.discovery);
    let server = load.discovery.plaintext();
    let subscribe = |stream: usize| {
        let names = if stream < STREAMS { NAMES } else { TOO_MANY_NAMES };
        let name = |number| format!("outbound|80||unknown-{stream}-{number}.example.com");
        EdsClient::start(server, NAMESPACE, (0..names).map(name).collect())
    };
    let quiet = flips(load, phases.quiet).await;
    let meter = Meter::start(&attacked);
    let streams: Vec<EdsClient> = (0..=STREAMS).map(subscribe).collect();
    let during = flips(load, phases.attack).await;
    // Only processes on the machine of discovery can be clients of this port.
    let open = streams.len() as u64;
    let cost = Cost { sources: open, ..meter.cost() };
    drop(streams);
    let after = flips(load, phases.quiet).await;
    Measurement {
        listener: PLAINTEXT.to_owned(),
        attack: format!("{STREAMS} streams with {NAMES} unknown names, one with {TOO_MANY_NAMES}"),
        rows: vec![row("endpoint changes", [quiet, during, after])],
        examples: Vec::new(),
        cost,
        attempts: open,
        most_open: open,
    }
}

/// Measures the same while another namespace exports services with the hosts of all others, with its own
/// endpoints. A third namespace must keep the endpoints of the others.
async fn tenant(load: &LoadTest, phases: Phases) -> Measurement {
    let attacked = attacked(&load.discovery);
    let clusters = (0..SIZE.services).map(cluster).collect();
    let neighbor = EdsClient::start(load.discovery.plaintext(), "neighbor", clusters);
    let quiet = flips(load, phases.quiet).await;
    let meter = Meter::start(&attacked);
    for service in 0..TENANT_SERVICES {
        load.discovery.configure(&foreign_service(service));
    }
    let warned = || load.discovery.log().contains("aaa/tenant-");
    kit::wait::until("discovery warns of the tenant's services", async || warned()).await;
    let mut during = flips(load, phases.attack).await;
    let wanted = load.eds_client.state().endpoints.clone();
    let is_right = neighbor.until(PUSHED, |state| state.endpoints == wanted).await.is_some();
    during.changed += u64::from(!is_right);
    let cost = meter.cost();
    for service in 0..TENANT_SERVICES {
        load.discovery.configure_file(&format!("ServiceEntry-tenant-{service}.yaml"), "");
    }
    let after = flips(load, phases.quiet).await;
    Measurement {
        listener: "discovery, configuration".to_owned(),
        attack: format!("{TENANT_SERVICES} services of a tenant with the hosts of others"),
        rows: vec![row("endpoint changes", [quiet, during, after])],
        examples: Vec::new(),
        cost,
        attempts: 0,
        most_open: 0,
    }
}

fn foreign_service(number: u32) -> Value {
    json!({
        "apiVersion": "networking.istio.io/v1",
        "kind": "ServiceEntry",
        // Before the namespace of the fleet by name, but younger.
        "metadata": {"name": format!("tenant-{number}"), "namespace": "aaa", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "hosts": [format!("service-{:03}.fleet.example.com", number % SIZE.services)],
            "location": "MESH_INTERNAL",
            "resolution": "STATIC",
            "ports": [{"number": 8080, "name": "http", "protocol": "HTTP"}],
            "endpoints": [{"address": "192.0.2.1"}],
        },
    })
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

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
