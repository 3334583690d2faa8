//! Whom a probe dials: this machine, unless that was allowed to be otherwise; and from which address.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU16;
use std::sync::Arc;

use nix::ifaddrs::getifaddrs;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use workload_health::{HealthReason, Unhealthy};

use super::TargetRules;
use crate::machine::{PROBE_SOURCE4, PROBE_SOURCE6};

/// One address that is dialled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Target {
    /// With the scope, where the address is link-local.
    pub(super) address: SocketAddr,
    /// Absent: the kernel chooses.
    pub(super) source: Option<IpAddr>,
}

/// Finds the targets of probes.
pub(super) struct Targets {
    pub(super) rules: TargetRules,
    /// One question at a time: a resolver that hangs keeps a thread for each.
    lookups: Arc<Semaphore>,
}

impl Targets {
    pub(super) fn new(rules: TargetRules) -> Self {
        Self { rules, lookups: Arc::new(Semaphore::new(1)) }
    }

    /// The targets of a probe, to be tried in order; at least one. A name is looked up here, once a probe.
    pub(super) async fn find(&self, host: Option<&str>, port: NonZeroU16) -> Result<Vec<Target>, Unhealthy> {
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
        let permit = permit.map_err(|_| unknown("the resolver has not answered the last question"))?;
        let name = host.to_owned();
        let asked = tokio::spawn(async move {
            let _permit = permit;
            tokio::net::lookup_host((name, 0)).await.map(Iterator::collect::<Vec<SocketAddr>>)
        });
        let found = asked.await.map_err(|_| unknown("the question was lost"))?;
        let found = found.map_err(|error| unknown(&error.to_string()))?;
        if found.is_empty() {
            Err(unknown("it has no address"))
        } else {
            Ok(found.iter().map(SocketAddr::ip).collect())
        }
    }
}

/// Those that may be dialled, if there is one.
fn allowed(
    rules: &TargetRules,
    host: Option<&str>,
    found: &[IpAddr],
    port: u16,
) -> Result<Vec<Target>, Unhealthy> {
    // Loopback needs no list, which costs more than the rest of what is decided here.
    let is_loopback = found.iter().all(IpAddr::is_loopback);
    let local = if is_loopback { Vec::new() } else { local_addresses() };
    let targets: Vec<Target> = found.iter().filter_map(|ip| target(rules, *ip, port, &local)).collect();
    if targets.is_empty() {
        let shown = found.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let name = host.filter(|host| *host != shown).map(|host| format!("{host} is ")).unwrap_or_default();
        let text =
            format!("{name}{shown}, which is no address of this machine; --allow-remote-probes lets it be");
        return Err(Unhealthy::new(HealthReason::TargetNotLocal, &text));
    }
    Ok(targets)
}

/// `None`: not to be dialled.
fn target(rules: &TargetRules, ip: IpAddr, port: u16, local: &[SocketAddr]) -> Option<Target> {
    // To the kernel these are this machine.
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

/// The addresses of this machine's interfaces, port 0.
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

/// Dials one after another until one accepts, and is content with that.
pub(super) async fn reach(targets: &[Target]) -> Result<(), Unhealthy> {
    first(targets).await.map(drop)
}

/// The same, and the connection is used.
pub(super) async fn connect(targets: &[Target]) -> Result<TcpStream, Unhealthy> {
    first(targets).await?.ok_or_else(super::wire::cut_off)
}

/// `None`: it stood, and was reset at once. What is told is of the first one: the others may be addresses that this machine does not
/// speak, as `::1` of `localhost`.
async fn first(targets: &[Target]) -> Result<Option<TcpStream>, Unhealthy> {
    let mut first = None;
    for target in targets {
        match dial(*target).await {
            Ok(stream) => return Ok(stream),
            Err(unhealthy) => drop(first.get_or_insert(unhealthy)),
        }
    }
    Err(first.unwrap_or_else(|| Unhealthy::new(HealthReason::CannotRun, "nothing to dial")))
}

async fn dial(target: Target) -> Result<Option<TcpStream>, Unhealthy> {
    let Target { address, source } = target;
    let cannot = |error: io::Error| Unhealthy::new(HealthReason::CannotRun, &format!("no socket: {error}"));
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.map_err(cannot)?;
    if let Some(source) = source {
        socket.bind(SocketAddr::new(source, 0)).map_err(|error| source_missing(source, &error))?;
    }
    let stream = match socket.connect(address).await {
        Ok(stream) => stream,
        // Where nobody listens the kernel says that it is refused: this one has been accepted.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
        Err(error) => return Err(refused(address, &error)),
    };
    // A port that nobody listens on can be the one that the kernel gave to us, and then we speak to ourselves.
    if stream.local_addr().ok() == stream.peer_addr().ok() {
        return Err(refused(address, &io::ErrorKind::ConnectionRefused.into()));
    }
    Ok(Some(stream))
}

fn source_missing(source: IpAddr, error: &io::Error) -> Unhealthy {
    let text = match (error.kind(), source) {
        (io::ErrorKind::AddrNotAvailable, IpAddr::V6(_)) => format!(
            "--capture on probes from {source}, which is no address of this machine: ip -6 address add {source}/128 dev lo"
        ),
        (io::ErrorKind::AddrNotAvailable, IpAddr::V4(_)) => format!(
            "--capture on probes from {source}, which is no address of this machine: ip address add {source}/32 dev lo"
        ),
        _ => format!("cannot probe from {source}: {error}"),
    };
    Unhealthy::new(HealthReason::CannotRun, &text)
}

fn refused(address: SocketAddr, error: &io::Error) -> Unhealthy {
    let (reason, text) = match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            (HealthReason::ConnectionRefused, format!("{address}: connection refused"))
        }
        io::ErrorKind::TimedOut => (HealthReason::Timeout, format!("{address}: no answer to the connection")),
        _ => (HealthReason::Unreachable, format!("{address}: {error}")),
    };
    Unhealthy::new(reason, &text)
}

#[cfg(test)]
mod tests;
