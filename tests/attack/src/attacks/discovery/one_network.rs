//! A client with a certificate and all addresses of an IPv6 network, of which it uses a new one for each
//! connection.

use std::sync::Arc;
use std::time::Duration;

use kit::envoy;
use kit::vm::certificates::{Authority, DISCOVERY_NAME};
use kit::vm::discovery::Discovery;
use kit::vm::fleet::{FleetSettings, clients, documents};

use super::certificate_holders::tls;
use super::{ENVOYS, LIMIT, SIZE, attacked, scenario};
use crate::attacks::health_checks;
use crate::container::Container;
use crate::hostile::{Holder, HostileClients, Then};
use crate::http2::closed_window;
use crate::measurement::{Measurement, Phases, measure};
use crate::network;
use crate::newcomer::{JOINED, Kind, Newcomer};

const LISTENER: &str = "discovery 15012, IPv6";
/// The number of addresses, more than there are connections.
const ADDRESSES: u32 = 2000;
/// The same for what each connection makes expensive.
const FEWER: u32 = 200;

/// Attacks a discovery server of its own, to which Envoys connect from another network.
///
/// # Errors
/// If the server does not start.
pub(super) async fn run(phases: Phases, mut done: impl FnMut(Measurement)) -> Result<(), String> {
    let _container = Container::new("attack-discovery-ipv6", LIMIT);
    let folder = envoy::folder("attack-discovery-ipv6");
    let authority = Authority::new();
    let files = authority.issue(&folder, "discovery", DISCOVERY_NAME);
    // The port in plaintext is not a loopback address here; nothing connects to it.
    let discovery =
        Discovery::at(network::server(), &folder, &documents(SIZE.services)).flags(&["--insecure"]);
    let mut discovery = discovery.tls(&files);
    discovery.start().await?;
    let settings = FleetSettings {
        server: discovery.secure(),
        agents: 1,
        services: SIZE.services,
        heartbeat: SIZE.heartbeat,
        ramp: Duration::ZERO,
        tls: clients(&authority, &folder),
    };
    let attacked = attacked(&discovery);
    for (attack, hostile) in attacks(&discovery, &settings) {
        let newcomers = vec![Newcomer::new(ENVOYS, Kind::Envoy, &settings)];
        let honest = health_checks(network::honest(), discovery.monitoring());
        let mut scenario = scenario(LISTENER, attack, honest, newcomers, vec![hostile], &attacked);
        scenario.bars.push((ENVOYS, JOINED));
        done(measure(scenario, phases).await);
    }
    Ok(())
}

fn attacks(discovery: &Discovery, settings: &FleetSettings) -> Vec<(&'static str, HostileClients)> {
    let without_streams = HostileClients {
        sources: network::addresses(ADDRESSES),
        address: discovery.secure(),
        connections: 1,
        per_second: 1,
        tls: Some(tls(Arc::clone(&settings.tls[0]))),
        bytes: closed_window(),
        then: Then::Wait,
    };
    let hold = |holder: Holder| HostileClients {
        sources: network::addresses(FEWER),
        then: Then::Hold(holder),
        ..without_streams.clone()
    };
    vec![
        ("200 addresses of one /64, messages of 4 MiB that do not end", hold(Holder::HalfMessage)),
        ("200 addresses of one /64, machines", hold(Holder::Machine)),
        ("2000 addresses of one /64, connections without streams", without_streams),
    ]
}
