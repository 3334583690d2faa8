//! Clients with a certificate of the mesh: of the service account of a service, as if it was stolen from
//! one of its machines.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kit::net;
use kit::vm::certificates::DISCOVERY_NAME;
use kit::vm::fleet::LoadTest;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;

use super::{ENVOYS, SECURE, attacked, scenario};
use crate::addresses;
use crate::attacks::http::HttpListener;
use crate::attacks::{Strength, health_checks, of_size};
use crate::hostile::{Holder, HostileClients, Then};
use crate::http2::{Request, closed_window};
use crate::measurement::{Measurement, Phases, measure};
use crate::newcomer::{JOINED, Kind, Newcomer};
use crate::request::Tls;

/// The path of the ADS stream.
const ADS: &str = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";
/// The beginning of a message of 4 MiB in gRPC.
const BEGIN: &[u8] = &[0, 0, 0x40, 0, 0, b'x'];
const AGENTS: &str = "new agents";
/// Addresses of a client that has many.
const ADDRESSES: u32 = 200;

/// Attacks a discovery server in all ways of few or of many sources, one after the other, while Envoys
/// and agents connect.
pub(super) async fn run(
    load: &LoadTest,
    many: bool,
    strength: Strength,
    phases: Phases,
    mut done: impl FnMut(Measurement),
) {
    let attacked = attacked(&load.discovery);
    for (attack, hostile) in of_size(attacks(load, strength), many, |(_, hostile)| hostile) {
        let newcomers = vec![
            Newcomer::new(ENVOYS, Kind::Envoy, &load.settings),
            Newcomer::new(AGENTS, Kind::Agent, &load.settings),
        ];
        let honest = health_checks(net::loopback(), load.discovery.monitoring());
        let mut scenario = scenario(SECURE, attack, honest, newcomers, hostile, &attacked);
        scenario.bars.extend([(ENVOYS, JOINED), (AGENTS, JOINED)]);
        done(measure(scenario, phases).await);
    }
}

/// Returns a client with this certificate.
pub(super) fn tls(config: Arc<ClientConfig>) -> Tls {
    let server = ServerName::try_from(DISCOVERY_NAME).expect("a name");
    Tls { connector: TlsConnector::from(config), server }
}

/// Returns a listener for ADS.
pub(super) fn ads(address: SocketAddr, tls: Option<Tls>) -> HttpListener {
    HttpListener { address, tls, method: "POST", path: ADS, request: Vec::new() }
}

/// Returns hostile HTTP/2 clients of a listener for ADS.
pub(super) fn http2(ads: &HttpListener, strength: Strength) -> Vec<HostileClients> {
    let headers = [("content-type", "application/grpc"), ("te", "trailers")];
    let request = Request { method: "POST", path: ADS, headers: &headers, body: Some(BEGIN) };
    ads.http2_of(request, strength)
}

fn attacks(load: &LoadTest, strength: Strength) -> Vec<(&'static str, Vec<HostileClients>)> {
    let tls = tls(Arc::clone(&load.settings.tls[0]));
    let idle = HostileClients {
        sources: addresses(1),
        address: load.discovery.secure(),
        connections: strength.connections,
        per_second: Strength::PER_SECOND,
        tls: Some(tls.clone()),
        bytes: Vec::new(),
        then: Then::Wait,
    };
    let without_streams = HostileClients { bytes: closed_window(), ..idle.clone() };
    let hold = |sources: u32, connections: usize, holder: Holder| HostileClients {
        sources: addresses(sources),
        connections,
        then: Then::Hold(holder),
        ..idle.clone()
    };
    let ads = ads(load.discovery.secure(), Some(tls));
    let reconnecting = HostileClients {
        bytes: Vec::new(),
        then: Then::Send { bytes: b"x".as_slice().into(), every: Duration::ZERO },
        ..idle.clone()
    };
    vec![
        ("connections without streams", vec![without_streams]),
        ("connections that send no HTTP/2", vec![reconnecting]),
        (
            "200 addresses, connections without streams",
            vec![HostileClients {
                sources: addresses(ADDRESSES),
                connections: strength.connections / 16,
                per_second: 2,
                ..idle.clone()
            }],
        ),
        ("HTTP/2 without a window, resets, endless heads, pings", http2(&ads, strength)),
        ("messages of 4 MiB that do not end", vec![hold(1, 16, Holder::HalfMessage)]),
        (
            "200 addresses, messages of 4 MiB that do not end",
            vec![HostileClients { per_second: 1, ..hold(ADDRESSES, 1, Holder::HalfMessage) }],
        ),
        ("streams with 4096 unknown names", vec![hold(1, 64, Holder::UnknownNames)]),
        ("streams that read nothing", vec![hold(1, 64, Holder::ReadsNothing)]),
        ("one machine that flaps", vec![hold(1, 1, Holder::FlappingMachine)]),
        ("200 machines", vec![hold(ADDRESSES, 1, Holder::Machine)]),
    ]
}
