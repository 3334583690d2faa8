//! The network namespace in which everything runs: nothing leaves it, and one client can have all addresses
//! of an IPv6 network.

use std::fs;
use std::net::{IpAddr, Ipv6Addr};
use std::process::Command;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

/// The address of servers that listen on IPv6.
const SERVER: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xa77b, 0, 0, 0, 0, 0, 1);
/// The first 32 bits of the addresses of honest clients.
const HONEST: u128 = 0xfd00_a77c << 96;
/// The first 64 bits of the addresses of a hostile client.
const HOSTILE: u128 = 0xfd00_a77a << 96;

/// Moves this process, which has one thread, to a network namespace of its own. A user who is not root
/// becomes root in a user namespace too.
///
/// # Errors
/// Names what the kernel refuses, or which command fails.
pub fn enter() -> Result<(), String> {
    let (user, group) = (geteuid(), getegid());
    let flags = if user.is_root() {
        CloneFlags::CLONE_NEWNET
    } else {
        CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWUSER
    };
    unshare(flags).map_err(|error| format!("cannot create a network namespace: {error}; run as root"))?;
    if !user.is_root() {
        write("/proc/self/setgroups", "deny")?;
        write("/proc/self/uid_map", &format!("0 {user} 1"))?;
        write("/proc/self/gid_map", &format!("0 {group} 1"))?;
    }
    ip("link set lo up")?;
    ip(&format!("-6 address add {SERVER}/128 dev lo nodad"))?;
    ip(&format!("-6 route add local {}/32 dev lo", Ipv6Addr::from_bits(HONEST)))?;
    ip(&format!("-6 route add local {}/64 dev lo", Ipv6Addr::from_bits(HOSTILE)))?;
    // A client may use an address of these networks that is not on an interface.
    write("/proc/sys/net/ipv6/ip_nonlocal_bind", "1")
}

/// Returns the address of servers that listen on IPv6.
pub fn server() -> IpAddr {
    SERVER.into()
}

/// Returns an address of an honest client of [`server`], in a network that no other one has.
pub fn honest() -> IpAddr {
    let network = u128::from(fastrand::u32(..)) << 64;
    Ipv6Addr::from_bits(HONEST | network | 1).into()
}

/// Returns random addresses of one IPv6 network with a prefix of 64 bits.
pub fn addresses(count: u32) -> Vec<IpAddr> {
    (0..count).map(|_| Ipv6Addr::from_bits(HOSTILE | u128::from(fastrand::u64(..))).into()).collect()
}

/// Returns the part of an address that identifies a source: an IPv4 address, or 64 bits.
pub fn source(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

fn write(file: &str, text: &str) -> Result<(), String> {
    fs::write(file, text).map_err(|error| format!("{file}: {error}"))
}

fn ip(arguments: &str) -> Result<(), String> {
    let status = Command::new("ip").args(arguments.split(' ')).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("ip {arguments}: {status}")),
        Err(error) => Err(format!("ip {arguments}: {error}; install iproute2")),
    }
}

#[cfg(test)]
mod tests;
