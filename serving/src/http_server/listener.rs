//! Listening sockets of the servers: TCP, or a Unix socket that only its owner can open.

use std::fs::{self, Permissions};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use crate::source::Source;

/// Maximum number of connections that wait to be accepted: clients that reconnect at the same time
/// wait there and not in our memory.
const BACKLOG: i32 = 4096;
/// Size of a connection's send buffer in bytes. Without a limit the kernel keeps megabytes for each
/// client that does not read, and counts them as memory of the container.
const SEND_BUFFER: usize = 256 * 1024;

#[derive(Debug)]
pub enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Binds a TCP socket. `[::]` accepts IPv4 too, whatever the system's default for `IPV6_V6ONLY` is,
/// and falls back to IPv4 on a machine without IPv6.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP)) {
        Err(_) if address.ip() == Ipv6Addr::UNSPECIFIED => {
            return bind(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), address.port()));
        }
        socket => socket?,
    };
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    // Accepted connections inherit it.
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Binds a Unix socket with mode 0600. A stale socket file, on which no process listens, is
/// replaced.
pub fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    remove_stale(path)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::unix(path)?)?;
    // The mode is set before `listen`, so that no other user can connect in between.
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    socket.listen(BACKLOG)?;
    UnixListener::from_std(socket.into())
}

fn remove_stale(path: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
        return Ok(());
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
        Err(_) => fs::remove_file(path),
    }
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

impl From<UnixListener> for Listener {
    fn from(listener: UnixListener) -> Self {
        Self::Unix(listener)
    }
}

impl Listener {
    pub(super) async fn accept(&self) -> io::Result<(Stream, Peer)> {
        Ok(match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                (Stream::Tcp(stream), Peer::Tcp(peer))
            }
            Self::Unix(listener) => (Stream::Unix(listener.accept().await?.0), Peer::Unix),
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    Tcp(SocketAddr),
    /// A process with permission to open the Unix socket.
    Unix,
}

impl Peer {
    /// Returns what limits per client apply to; a Unix socket has none.
    pub fn source(self) -> Option<Source> {
        match self {
            Self::Tcp(address) => Some(address.ip().into()),
            Self::Unix => None,
        }
    }

    /// Like [`Self::source`], for a client that shares its limits with nobody else of its network.
    pub fn source_alone(self) -> Option<Source> {
        match self {
            Self::Tcp(address) => Some(Source::alone(address.ip())),
            Self::Unix => None,
        }
    }

    /// Returns true if the client is on this host and is not a proxy: captured traffic arrives from
    /// 127.0.0.6 and ::6.
    pub fn is_local(self) -> bool {
        match self {
            Self::Tcp(address) => {
                let ip = address.ip().to_canonical();
                ip == IpAddr::V4(Ipv4Addr::LOCALHOST) || ip == IpAddr::V6(Ipv6Addr::LOCALHOST)
            }
            Self::Unix => true,
        }
    }
}

/// An accepted connection.
#[derive(Debug)]
pub enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Makes small writes not wait for the acknowledgement of the previous one.
    pub(super) fn set_nodelay(&self) {
        if let Self::Tcp(stream) = self {
            let _ = stream.set_nodelay(true);
        }
    }

    /// Makes the end of the connection a reset, which discards unsent data.
    pub(super) fn reset_on_close(&self) {
        let descriptor = match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        };
        let _ = SockRef::from(&descriptor).set_linger(Some(Duration::ZERO));
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context, buffer: &mut ReadBuf) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Self::Unix(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
mod tests;
