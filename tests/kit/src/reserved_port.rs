//! Ports of loopback addresses that no other process gets.

use std::net::{IpAddr, SocketAddr};

use tokio::net::TcpSocket;

/// A port that is bound but does not listen: connections to it are refused, and the kernel gives it
/// to no other process. A server that sets `SO_REUSEADDR`, as the servers of tokio, the standard
/// library and Go do, can listen on it nevertheless.
pub struct ReservedPort {
    pub address: SocketAddr,
    _socket: TcpSocket,
}

impl ReservedPort {
    /// Reserves a free port of this address in the network namespace of this thread.
    ///
    /// # Panics
    /// If there is none.
    pub fn new(ip: IpAddr) -> Self {
        let socket = if ip.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
        let socket = socket.expect("a socket");
        socket.set_reuseaddr(true).expect("the option exists");
        socket.bind(SocketAddr::new(ip, 0)).expect("a free port");
        let address = socket.local_addr().expect("a bound socket has an address");
        Self { address, _socket: socket }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }
}

#[cfg(test)]
mod tests;
