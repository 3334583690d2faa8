//! The demo's ports, and the process that uses each.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener};

/// HTTP; healthy until it is switched.
pub const WEB: u16 = 18080;
/// HTTP; fails on purpose.
pub const LEGACY: u16 = 18081;
/// HTTPS with a self-signed certificate.
pub const SHOP: u16 = 18443;
pub const DB: u16 = 18432;
/// The gRPC health service.
pub const API: u16 = 18090;
/// The control port of the application.
pub const FLIP: u16 = 18000;
pub const PROBES: u16 = 15020;
/// The agent's readiness endpoint.
pub const READY: u16 = 15021;

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

/// Checks that every port is free.
///
/// # Errors
/// Names each port that is in use, and the process of the demo that needs it.
pub fn check(pod_ip: IpAddr) -> Result<(), String> {
    let free = |address: SocketAddr| TcpListener::bind(address).map(drop);
    let any = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let mut taken = Vec::new();
    for (port, user) in USERS {
        // Envoy and the agent listen on all addresses, IPv4 and IPv6 if available.
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
