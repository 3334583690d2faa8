//! The addresses that a probe connects to, and the source address it uses. Only addresses of this
//! machine are allowed unless `--allow-remote-probes` is set.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU16;
use std::sync::Arc;

use nix::ifaddrs::getifaddrs;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use workload_health::{HealthReason, Unhealthy};

use super::TargetRules;
use address::{PROBE_SOURCE4, PROBE_SOURCE6};

/// One address to connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Target {
    /// Includes the scope ID if the address is link-local.
    pub(super) address: SocketAddr,
    /// Source address to bind; `None` lets the kernel choose.
    pub(super) source: Option<IpAddr>,
}

pub(super) struct TargetResolver {
    pub(super) rules: TargetRules,
    /// Only one DNS lookup at a time, because each lookup that hangs occupies a thread.
    lookups: Arc<Semaphore>,
}

impl TargetResolver {
    pub(super) fn new(rules: TargetRules) -> Self {
        Self { rules, lookups: Arc::new(Semaphore::new(1)) }
    }

    /// Returns the addresses to try, in order; at least one. A name is resolved once per probe.
    pub(super) async fn resolve(
        &self,
        host: Option<&str>,
        port: NonZeroU16,
    ) -> Result<Vec<Target>, Unhealthy> {
        let found = match host {
            Some(host) => self.look_up(host).await?,
            None => vec![self.rules.instance_ip],
        };
        allowed(&self.rules, host, &found, port.get())
    }

    async fn look_up(&self, host: &str) -> Result<Vec<IpAddr>, Unhealthy> {
        if let Ok(ip) = host.parse() {
            return Ok(vec![ip]);
        }
        if host.eq_ignore_ascii_case("localhost") {
            return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        let unknown =
            |why: &str| Unhealthy::new(HealthReason::CannotRun, &format!("cannot look up {host}: {why}"));
        let permit = self.lookups.clone().try_acquire_owned();
        let permit = permit.map_err(|_| unknown("the previous DNS lookup has not finished"))?;
        let name = host.to_owned();
        let lookup = tokio::spawn(async move {
            let _permit = permit;
            tokio::net::lookup_host((name, 0)).await.map(Iterator::collect::<Vec<SocketAddr>>)
        });
        let found = lookup.await.map_err(|_| unknown("the DNS lookup was cancelled"))?;
        let found = found.map_err(|error| unknown(&error.to_string()))?;
        if found.is_empty() {
            Err(unknown("the name has no address"))
        } else {
            Ok(found.iter().map(SocketAddr::ip).collect())
        }
    }
}

/// Returns the addresses that the rules allow; an error if there is none.
fn allowed(
    rules: &TargetRules,
    host: Option<&str>,
    found: &[IpAddr],
    port: u16,
) -> Result<Vec<Target>, Unhealthy> {
    // Loopback addresses need no list of the local addresses, which is the most expensive step.
    let is_loopback = found.iter().all(IpAddr::is_loopback);
    let local = if is_loopback { Vec::new() } else { local_addresses() };
    let targets: Vec<Target> = found.iter().filter_map(|ip| permitted(rules, *ip, port, &local)).collect();
    if targets.is_empty() {
        let shown = found.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let name = host.filter(|host| *host != shown).map(|host| format!("{host} is ")).unwrap_or_default();
        let text = format!(
            "{name}{shown}, which is not an address of this machine; set --allow-remote-probes to allow it"
        );
        return Err(Unhealthy::new(HealthReason::TargetNotLocal, &text));
    }
    Ok(targets)
}

/// Returns `None` if the rules do not allow the address.
fn permitted(rules: &TargetRules, ip: IpAddr, port: u16, local: &[SocketAddr]) -> Option<Target> {
    // Connecting to an unspecified address reaches the local machine.
    let ip = match ip.to_canonical() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let own = local.iter().find(|own| own.ip() == ip);
    if own.is_none() && !ip.is_loopback() {
        return rules.allow_remote.then(|| Target { address: SocketAddr::new(ip, port), source: None });
    }
    let mut address = own.copied().unwrap_or(SocketAddr::new(ip, port));
    address.set_port(port);
    let source = (rules.capture && !ip.is_loopback()).then(|| match ip {
        IpAddr::V4(_) => PROBE_SOURCE4.into(),
        IpAddr::V6(_) => PROBE_SOURCE6.into(),
    });
    Some(Target { address, source })
}

/// Returns the addresses of this machine's interfaces, with port 0.
fn local_addresses() -> Vec<SocketAddr> {
    let addresses = getifaddrs().into_iter().flatten().filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|v4| SocketAddr::new(v4.ip().into(), 0));
        v4.or_else(|| {
            address
                .as_sockaddr_in6()
                .map(|v6| std::net::SocketAddrV6::new(v6.ip(), 0, 0, v6.scope_id()).into())
        })
    });
    addresses.collect()
}

/// Connects to one target after another until one accepts, and closes the connection.
pub(super) async fn check_tcp(targets: &[Target]) -> Result<(), Unhealthy> {
    connect_first(targets).await.map(drop)
}

/// Connects to one target after another until one accepts.
pub(super) async fn connect(targets: &[Target]) -> Result<TcpStream, Unhealthy> {
    connect_first(targets).await?.ok_or_else(broken_off)
}

/// The connection was established but closed before the response was complete.
pub(super) fn broken_off() -> Unhealthy {
    Unhealthy::new(HealthReason::BadResponse, "the connection closed before the response was complete")
}

/// Returns `None` if a connection was accepted and reset at once. If all targets fail, the error is
/// that of the first one, because the others may be addresses that this machine does not support,
/// such as `::1` for `localhost`.
async fn connect_first(targets: &[Target]) -> Result<Option<TcpStream>, Unhealthy> {
    let mut first = None;
    for target in targets {
        match dial(*target).await {
            Ok(stream) => return Ok(stream),
            Err(unhealthy) => drop(first.get_or_insert(unhealthy)),
        }
    }
    Err(first.unwrap_or_else(|| Unhealthy::new(HealthReason::CannotRun, "no address to connect to")))
}

async fn dial(target: Target) -> Result<Option<TcpStream>, Unhealthy> {
    let Target { address, source } = target;
    let cannot = |error: io::Error| {
        Unhealthy::new(HealthReason::CannotRun, &format!("cannot create a socket: {error}"))
    };
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.map_err(cannot)?;
    if let Some(source) = source {
        socket.bind(SocketAddr::new(source, 0)).map_err(|error| bind_error(source, &error))?;
    }
    let stream = match socket.connect(address).await {
        Ok(stream) => stream,
        // A port without a listener leads to ECONNREFUSED; ECONNRESET means that the connection was
        // accepted first.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
        Err(error) => return Err(connect_error(address, &error)),
    };
    // If no process listens on the port, the kernel can assign it as the source port, and the
    // socket connects to itself.
    if stream.local_addr().ok() == stream.peer_addr().ok() {
        return Err(connect_error(address, &io::ErrorKind::ConnectionRefused.into()));
    }
    Ok(Some(stream))
}

fn bind_error(source: IpAddr, error: &io::Error) -> Unhealthy {
    let text = match (error.kind(), source) {
        (io::ErrorKind::AddrNotAvailable, IpAddr::V6(_)) => format!(
            "--capture on probes from {source}, which is not an address of this machine: ip -6 address add {source}/128 dev lo"
        ),
        (io::ErrorKind::AddrNotAvailable, IpAddr::V4(_)) => format!(
            "--capture on probes from {source}, which is not an address of this machine: ip address add {source}/32 dev lo"
        ),
        _ => format!("cannot probe from {source}: {error}"),
    };
    Unhealthy::new(HealthReason::CannotRun, &text)
}

fn connect_error(address: SocketAddr, error: &io::Error) -> Unhealthy {
    let (reason, text) = match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            (HealthReason::ConnectionRefused, format!("{address}: connection refused"))
        }
        io::ErrorKind::TimedOut => (HealthReason::Timeout, format!("{address}: connection timed out")),
        _ => (HealthReason::Unreachable, format!("{address}: {error}")),
    };
    Unhealthy::new(reason, &text)
}

#[cfg(test)]
mod tests;
