//! The source of a connection, to which limits per client apply.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// An IPv4 address, or the /64 network of an IPv6 address: one machine commonly has all addresses
/// of such a network. Of a known machine, it can be the IPv6 address alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    address: IpAddr,
    is_network: bool,
}

impl Source {
    /// Returns the source that is this address alone.
    pub fn alone(address: IpAddr) -> Self {
        Self { address: address.to_canonical(), is_network: false }
    }
}

impl From<IpAddr> for Source {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Self { address: Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into(), is_network: true }
            }
            address => Self::alone(address),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self { address, is_network } = self;
        if *is_network { write!(f, "{address}/64") } else { address.fmt(f) }
    }
}

#[cfg(test)]
mod tests;
