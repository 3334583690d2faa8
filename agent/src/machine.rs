//! What the agent has to know of the machine: which addresses it has, whether its kernel speaks IPv6, how many descriptors there are.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;

use nix::ifaddrs::getifaddrs;
use nix::sys::resource::{Resource, getrlimit};

/// The source of probes over IPv4 that capture rules let pass; on Linux all of 127.0.0.0/8 is there.
pub const PROBE_SOURCE4: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 6);
/// The same over IPv6. Somebody has to put it on `lo` first.
pub const PROBE_SOURCE6: Ipv6Addr = Ipv6Addr::new(0, 0, 0, 0, 0, 0, 0, 6);

/// The facts that decide how the bootstrap looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// A socket can listen on `::`.
    pub ipv6: bool,
    /// 127.0.0.6 is an address of this machine.
    pub probe_source4: bool,
    /// ::6 is one.
    pub probe_source6: bool,
    /// The first address that others reach this machine by: neither loopback nor link-local, in the kernel's order.
    pub address: Option<IpAddr>,
}

impl Machine {
    /// Asks the kernel.
    pub fn here() -> Self {
        Self {
            ipv6: has(Ipv6Addr::UNSPECIFIED.into()),
            probe_source4: has(PROBE_SOURCE4.into()),
            probe_source6: has(PROBE_SOURCE6.into()),
            address: first_address(),
        }
    }

    /// `[::]` where the kernel speaks IPv6, else `0.0.0.0`; any other address as it is.
    pub fn any_address(&self, address: SocketAddr) -> SocketAddr {
        if address.ip() == Ipv6Addr::UNSPECIFIED && !self.ipv6 {
            SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), address.port())
        } else {
            address
        }
    }
}

/// The soft limit of open descriptors of this process.
pub fn descriptor_limit() -> u64 {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(soft, _)| soft)
}

/// The processors that this container may use, rounded up; absent: no limit. Control groups of version 2 and of version 1.
pub fn cpu_quota() -> Option<u32> {
    let read = |file: &str| std::fs::read_to_string(Path::new("/sys/fs/cgroup").join(file)).ok();
    let v2 = || quota(&read("cpu.max")?);
    let v1 =
        || quota(&format!("{} {}", read("cpu/cpu.cfs_quota_us")?.trim(), read("cpu/cpu.cfs_period_us")?));
    v2().or_else(v1)
}

/// The name of this machine.
pub fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "localhost".to_owned() } else { name.to_owned() }
}

/// `150000 100000`, time in each period, is 2; `max 100000` and `-1 100000` are none.
fn quota(text: &str) -> Option<u32> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (u64, u64) = (quota.parse().ok()?, period.parse().ok()?);
    let cpus = quota.checked_add(period.checked_sub(1)?)?.checked_div(period)?;
    u32::try_from(cpus).ok().filter(|cpus| *cpus > 0)
}

/// An address is there if a socket can be bound to it.
fn has(address: IpAddr) -> bool {
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
