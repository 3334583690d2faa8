//! Facts about the host that the agent depends on: its addresses, IPv6 support, the CPU quota and
//! the limit of open file descriptors.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;

use address::{PROBE_SOURCE4, PROBE_SOURCE6};
use nix::ifaddrs::getifaddrs;
use nix::sys::resource::{Resource, getrlimit};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// True if a socket can be bound to `::`.
    pub ipv6: bool,
    /// True if 127.0.0.6 is an address of this host.
    pub probe_source4: bool,
    /// True if ::6 is an address of this host.
    pub probe_source6: bool,
    /// The gateways of the default routes.
    pub gateways: Vec<IpAddr>,
    /// First address, in the kernel's order, that is neither loopback nor link-local.
    pub address: Option<IpAddr>,
}

impl Machine {
    pub fn here() -> Self {
        Self {
            ipv6: is_bindable(Ipv6Addr::UNSPECIFIED.into()),
            probe_source4: is_bindable(PROBE_SOURCE4.into()),
            probe_source6: is_bindable(PROBE_SOURCE6.into()),
            gateways: gateways(),
            address: first_address(),
        }
    }

    /// Returns `0.0.0.0` for `[::]` if the kernel does not support IPv6, and any other address
    /// unchanged.
    pub fn any_address(&self, address: SocketAddr) -> SocketAddr {
        if address.ip() == Ipv6Addr::UNSPECIFIED && !self.ipv6 {
            SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), address.port())
        } else {
            address
        }
    }
}

/// Returns the gateways of the default routes, from the kernel's tables of routes.
fn gateways() -> Vec<IpAddr> {
    let read = |file: &str| std::fs::read_to_string(Path::new("/proc/net").join(file)).unwrap_or_default();
    let v4 = read("route").lines().filter_map(gateway4).map(IpAddr::V4).collect::<Vec<_>>();
    let v6 = read("ipv6_route").lines().filter_map(gateway6).map(IpAddr::V6).collect::<Vec<_>>();
    [v4, v6].concat()
}

/// Returns the gateway of a line of `/proc/net/route` if it is a default route:
/// `eth0 00000000 0100A8C0 …`, interface, destination and gateway. The address is the number of which
/// the memory has the address's bytes.
fn gateway4(line: &str) -> Option<Ipv4Addr> {
    let mut fields = line.split_whitespace().skip(1);
    let mut field = || u32::from_str_radix(fields.next()?, 16).ok();
    let (destination, gateway) = (field()?, field()?);
    (destination == 0 && gateway != 0).then(|| Ipv4Addr::from(gateway.to_ne_bytes()))
}

/// Returns the gateway of a line of `/proc/net/ipv6_route` if it is a default route: destination and
/// its prefix length, source and its prefix length, gateway, each in hexadecimal digits.
fn gateway6(line: &str) -> Option<Ipv6Addr> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let gateway = u128::from_str_radix(fields.get(4)?, 16).ok()?;
    (fields.get(1) == Some(&"00") && gateway != 0).then(|| Ipv6Addr::from(gateway))
}

/// Returns the soft limit of open file descriptors of this process.
pub fn descriptor_limit() -> u64 {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(soft, _)| soft)
}

/// Returns the number of CPUs that this container may use, rounded up, from cgroup v2 or v1. `None`
/// means that there is no limit.
pub fn cpu_quota() -> Option<u32> {
    let read = |file: &str| std::fs::read_to_string(Path::new("/sys/fs/cgroup").join(file)).ok();
    let v2 = || quota(&read("cpu.max")?);
    let v1 =
        || quota(&format!("{} {}", read("cpu/cpu.cfs_quota_us")?.trim(), read("cpu/cpu.cfs_period_us")?));
    v2().or_else(v1)
}

pub fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "localhost".to_owned() } else { name.to_owned() }
}

/// Parses a quota and its period: `150000 100000` is 2; `max 100000` and `-1 100000` are `None`.
fn quota(text: &str) -> Option<u32> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (u64, u64) = (quota.parse().ok()?, period.parse().ok()?);
    let cpus = quota.checked_add(period.checked_sub(1)?)?.checked_div(period)?;
    u32::try_from(cpus).ok().filter(|cpus| *cpus > 0)
}

fn is_bindable(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

fn first_address() -> Option<IpAddr> {
    let addresses = getifaddrs().ok()?.filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
    });
    addresses.into_iter().find(|address| reachable(*address))
}

fn reachable(address: IpAddr) -> bool {
    let link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !(address.is_loopback() || address.is_unspecified() || link_local || address == IpAddr::V6(PROBE_SOURCE6))
}

#[cfg(test)]
mod tests;
