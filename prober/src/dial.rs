//! Opens the connection of a probe. Each probe and each redirect has a new one, as with kubelet's dialer
//! (`pkg/probe/dialer_others.go` of Kubernetes).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use probe::Reason;
use socket2::SockRef;
use tokio::net::{TcpSocket, TcpStream};

/// kubelet sets it so that closed connections leave no sockets behind for a minute.
const LINGER: Duration = Duration::from_secs(1);

/// Where a probe connects to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The address of the Pod.
    pub ip: IpAddr,
    /// The source address of the same family; `None` lets the kernel choose.
    pub source: Option<IpAddr>,
}

/// Connects to a port of the target. [`Reason::Closed`] means that the connection was accepted, and reset
/// at once.
pub(crate) async fn connect(target: Target, port: u16) -> Result<TcpStream, Reason> {
    let socket = if target.ip.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
    // Only a limit of file descriptors prevents a socket.
    let socket = socket.map_err(|_| Reason::Overloaded)?;
    SockRef::from(&socket).set_linger(Some(LINGER)).map_err(|_| Reason::Unreachable)?;
    if let Some(source) = target.source {
        socket.bind(SocketAddr::new(source, 0)).map_err(|_| Reason::Unreachable)?;
    }
    let stream = socket.connect(SocketAddr::new(target.ip, port)).await.map_err(|error| reason(&error))?;
    // If no process listens on the port, the kernel may choose it as the source port, and the socket
    // connects to itself.
    if stream.local_addr().ok() == stream.peer_addr().ok() {
        return Err(Reason::Refused);
    }
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

fn reason(error: &io::Error) -> Reason {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Reason::Refused,
        io::ErrorKind::ConnectionReset => Reason::Closed,
        io::ErrorKind::TimedOut => Reason::Timeout,
        _ => Reason::Unreachable,
    }
}
