//! The addresses of the Pod.

use std::net::IpAddr;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

/// Returns the Pod's addresses in the order in which Istio's agent lists them: `own`, which istiod knows the
/// Pod by, and those of all interfaces that are up and not in `excluded`. Loopback and link-local addresses
/// are left out. Without any, those of the loopback interface.
pub fn pod_addresses(own: Option<IpAddr>, excluded: &[&str]) -> Vec<String> {
    let is_listed = |flags: InterfaceFlags| {
        flags.contains(InterfaceFlags::IFF_UP) && !flags.contains(InterfaceFlags::IFF_LOOPBACK)
    };
    // Linux lists the interfaces themselves, then all IPv4 addresses, then all IPv6 addresses; Go the addresses of one
    // interface after another.
    let mut names: Vec<String> = Vec::new();
    let mut found: Vec<(String, IpAddr)> = Vec::new();
    for interface in getifaddrs().into_iter().flatten().filter(|interface| is_listed(interface.flags)) {
        // The name of an IPv4 address is its label, which may be `eth0:1`.
        let name = interface.interface_name.split(':').next().unwrap_or_default().to_owned();
        if !names.contains(&name) {
            names.push(name.clone());
        }
        let address = interface.address.and_then(|address| {
            let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
            v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
        });
        found.extend(address.filter(is_global).map(|address| (name, address)));
    }
    let mut addresses: Vec<IpAddr> = Vec::new();
    for name in &names {
        addresses.extend(found.iter().filter(|(other, _)| other == name).map(|(_, ip)| *ip));
    }
    if addresses.is_empty() {
        addresses = vec![[127, 0, 0, 1].into(), std::net::Ipv6Addr::LOCALHOST.into()];
    }
    let left_out: Vec<IpAddr> =
        found.iter().filter(|(name, _)| excluded.contains(&name.as_str())).map(|(_, ip)| *ip).collect();
    addresses.retain(|address| !left_out.contains(address) && Some(*address) != own);
    own.into_iter().chain(addresses).map(|address| address.to_string()).collect()
}

fn is_global(address: &IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => !address.is_link_local() && !address.is_loopback(),
        IpAddr::V6(address) => !address.is_unicast_link_local() && !address.is_loopback(),
    }
}
