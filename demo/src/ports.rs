//! The demo's ports. Each has a well-known number, and another one if that is in use.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::ops::Range;

/// The ports of one demo.
#[derive(Debug)]
pub(crate) struct Ports {
    /// Probe listener of Envoy.
    pub(crate) probes: u16,
    /// Readiness of the agent.
    pub(crate) ready: u16,
    /// The agent's page, on loopback.
    pub(crate) local: u16,
    /// Envoy's own metrics.
    pub(crate) stats: u16,
    /// The container `web`: http.
    pub(crate) web: u16,
    /// The container `legacy`: http, fails on purpose.
    pub(crate) legacy: u16,
    /// The container `shop`: https with a self-signed certificate.
    pub(crate) shop: u16,
    /// The container `db`: plain TCP.
    pub(crate) db: u16,
    /// The container `api`: gRPC health.
    pub(crate) api: u16,
    /// The switch of the containers.
    pub(crate) flip: u16,
    /// One line for each port that differs from its well-known number.
    pub(crate) notes: Vec<String>,
}

impl Ports {
    /// Chooses the ports; the application's ports are those of `pod_ip`.
    ///
    /// # Errors
    /// Fails if no port is free, for example because `pod_ip` is not an address of this machine.
    pub(crate) fn choose(pod_ip: IpAddr) -> Result<Self, String> {
        let mut notes = Vec::new();
        let mut taken = BTreeSet::new();
        let mut choose = |ip: IpAddr, preferred: u16, user: &str| -> Result<u16, String> {
            let port = match TcpListener::bind(SocketAddr::new(ip, preferred)) {
                Ok(_) => preferred,
                Err(error) => {
                    let port = free_port(ip, &taken)
                        .map_err(|error| format!("{ip} has no free port for {user}: {error}"))?;
                    notes.push(format!("port {preferred} cannot be used ({error}), using {port} for {user}"));
                    port
                }
            };
            taken.insert(port);
            Ok(port)
        };
        let any = if TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok() {
            IpAddr::from(Ipv6Addr::UNSPECIFIED)
        } else {
            IpAddr::from(Ipv4Addr::UNSPECIFIED)
        };
        Ok(Self {
            probes: choose(any, 15020, "Envoy's probe listener")?,
            ready: choose(any, 15021, "the agent's /healthz/ready")?,
            local: choose(Ipv4Addr::LOCALHOST.into(), 15004, "the agent's page")?,
            stats: choose(any, 15090, "Envoy's metrics")?,
            web: choose(pod_ip, 18080, "the container web")?,
            legacy: choose(pod_ip, 18081, "the container legacy")?,
            shop: choose(pod_ip, 18443, "the container shop")?,
            db: choose(pod_ip, 18432, "the container db")?,
            api: choose(pod_ip, 18090, "the container api")?,
            flip: choose(pod_ip, 18000, "the switch of the containers")?,
            notes,
        })
    }

    /// The address on which Envoy and the agent listen with `port`: every address of this machine.
    pub(crate) fn everywhere(port: u16) -> SocketAddr {
        SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port)
    }
}

/// Below those that the kernel gives to clients by default: until a program of the demo listens on the
/// port, no connection of another program takes it.
const FREE_PORTS: Range<u16> = 20_000..32_000;

/// Returns a free port of `ip` that was not chosen before. Two demos begin at different ports.
fn free_port(ip: IpAddr, taken: &BTreeSet<u16>) -> std::io::Result<u16> {
    let first = usize::try_from(std::process::id()).unwrap_or_default() % FREE_PORTS.len();
    let mut last = None;
    for port in FREE_PORTS.cycle().skip(first).take(FREE_PORTS.len()).filter(|port| !taken.contains(port)) {
        match TcpListener::bind(SocketAddr::new(ip, port)) {
            Ok(_) => return Ok(port),
            Err(error) if error.kind() == ErrorKind::AddrInUse => last = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(last.unwrap_or_else(|| ErrorKind::AddrInUse.into()))
}
