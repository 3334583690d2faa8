//! The demo's ports, and who needs each.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener};

/// http; healthy until it is flipped.
pub const WEB: u16 = 18080;
/// http; fails on purpose.
pub const LEGACY: u16 = 18081;
/// https with a self-signed certificate.
pub const SHOP: u16 = 18443;
/// raw tcp.
pub const DB: u16 = 18432;
/// gRPC health.
pub const API: u16 = 18090;
/// Where the application is flipped.
pub const FLIP: u16 = 18000;
/// Envoy's probe listener.
pub const PROBES: u16 = 15020;
/// The agent's readiness.
pub const READY: u16 = 15021;

/// Every port with its user.
const USERS: [(u16, &str); 9] = [
    (PROBES, "Envoy, for kubelet's probes"),
    (READY, "the agent, for /healthz/ready"),
    (15090, "Envoy, for its own metrics"),
    (WEB, "the application web (http)"),
    (LEGACY, "the application legacy (http, fails on purpose)"),
    (SHOP, "the application shop (https)"),
    (DB, "the application db (tcp)"),
    (API, "the application api (gRPC health)"),
    (FLIP, "the switch of the applications"),
];

/// Whether every port is free.
///
/// # Errors
/// Names each that is not, and who needs it.
pub fn check(pod_ip: IpAddr) -> Result<(), String> {
    let free = |address: SocketAddr| TcpListener::bind(address).map(drop);
    let any = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let mut taken = Vec::new();
    for (port, user) in USERS {
        // Envoy and the agent listen on every address, of both families where there are two.
        let everywhere = matches!(port, PROBES | READY | 15090);
        let result = match everywhere {
            true if free(SocketAddr::new(any, 0)).is_ok() => free(SocketAddr::new(any, port)),
            true => free(SocketAddr::new(IpAddr::from([0, 0, 0, 0]), port)),
            false => free(SocketAddr::new(pod_ip, port)),
        };
        if let Err(error) = result {
            taken.push(format!("port {port} cannot be used ({error}); it is needed by {user}"));
        }
    }
    if taken.is_empty() { Ok(()) } else { Err(taken.join("\ndemo: ")) }
}
