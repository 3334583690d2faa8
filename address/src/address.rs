//! Addresses in flags: where the agent listens, what it connects to, and which clients are allowed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use http::Uri;
use thiserror::Error;

/// Maximum length of a Unix socket path: 108 bytes in the kernel, including the closing NUL.
const SOCKET_PATH_LIMIT: usize = 107;

/// Source address of IPv4 probes, which capture rules exempt. On Linux all of 127.0.0.0/8 is
/// available.
pub const PROBE_SOURCE4: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 6);
/// Source address of IPv6 probes, which capture rules exempt. It must be added to the interface
/// `lo` first.
pub const PROBE_SOURCE6: Ipv6Addr = Ipv6Addr::new(0, 0, 0, 0, 0, 0, 0, 6);

/// Reason why an address was rejected. The text says what is allowed.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum AddressError {
    #[error("must be unix:PATH or a loopback host:port such as 127.0.0.1:15000")]
    NotLocal,
    /// The path of a Unix socket is relative; it would depend on the working directory.
    #[error("the path of a Unix socket must start with /")]
    RelativePath,
    #[error("the path of a Unix socket is at most {SOCKET_PATH_LIMIT} bytes long, this one is {0}")]
    LongPath(usize),
    /// `https`, which is not supported because no trust anchors are configured.
    #[error("https is not supported, only http://... and unix:PATH:/path")]
    HttpsUnsupported,
    #[error("must be http://host[:port]/path or unix:PATH:/path")]
    InvalidUrl,
    #[error("must be http://host:port or unix:PATH, without a path")]
    UnexpectedPath,
    #[error("must be a CIDR block such as 10.0.0.0/8 or fd00::/8, or one address")]
    InvalidCidr,
    #[error("must be `node`, a CIDR block such as 10.0.0.0/8 or fd00::/8, or one address")]
    InvalidClients,
}

/// Address on this host: a Unix socket or a loopback address, such as `unix:/run/admin.sock`,
/// `127.0.0.1:15000` or `localhost:15000`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LocalAddress {
    /// Absolute path of at most 107 bytes.
    Unix(PathBuf),
    /// Address in 127.0.0.0/8 or ::1; the port is not 0.
    Tcp(SocketAddr),
}

impl FromStr for LocalAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if let Some(path) = text.strip_prefix("unix:") {
            return socket_path(path).map(Self::Unix);
        }
        let address = match text.strip_prefix("localhost:") {
            Some(port) => port.parse().ok().map(|port| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port)),
            None => text.parse::<SocketAddr>().ok(),
        };
        match address {
            Some(address) if address.ip().is_loopback() && address.port() != 0 => Ok(Self::Tcp(address)),
            _ => Err(AddressError::NotLocal),
        }
    }
}

impl std::fmt::Display for LocalAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => address.fmt(f),
        }
    }
}

/// Returns true if two listeners on one host cannot use these addresses at the same time. `[::]`
/// includes all IPv4 addresses.
pub fn conflicts(one: SocketAddr, other: SocketAddr) -> bool {
    let covers = |all: IpAddr, ip: IpAddr| match all {
        IpAddr::V4(all) => all.is_unspecified() && ip.is_ipv4(),
        IpAddr::V6(all) => all.is_unspecified(),
    };
    let (a, b) = (one.ip().to_canonical(), other.ip().to_canonical());
    one.port() == other.port() && (a == b || covers(a, b) || covers(b, a))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrOff<T> {
    Off,
    On(T),
}

impl<T: FromStr> FromStr for OrOff<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        if text == "off" { Ok(Self::Off) } else { text.parse().map(Self::On) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    Unix(PathBuf),
    /// IP address that needs no lookup.
    Ip(SocketAddr),
    /// `localhost`, which is tried as 127.0.0.1 and then ::1, without a name lookup.
    Localhost(u16),
    Name(String, u16),
}

impl From<&LocalAddress> for Endpoint {
    fn from(address: &LocalAddress) -> Self {
        match address {
            LocalAddress::Unix(path) => Self::Unix(path.clone()),
            LocalAddress::Tcp(address) => Self::Ip(*address),
        }
    }
}

/// URL such as `http://localhost:15021/healthz/ready` or `unix:/run/agent.sock:/healthz/ready`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpUrl {
    pub endpoint: Endpoint,
    /// Value of the Host header, such as `localhost:15021`.
    pub authority: String,
    /// Path and query, at least `/`.
    pub path: String,
}

impl FromStr for HttpUrl {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if let Some(rest) = text.strip_prefix("unix:") {
            let (socket, path) = rest.rsplit_once(":/").ok_or(AddressError::InvalidUrl)?;
            let path = format!("/{path}").parse::<Uri>().map_err(|_| AddressError::InvalidUrl)?.to_string();
            return Ok(Self {
                endpoint: Endpoint::Unix(socket_path(socket)?),
                authority: "localhost".into(),
                path,
            });
        }
        let uri: Uri = text.parse().map_err(|_| AddressError::InvalidUrl)?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => return Err(AddressError::HttpsUnsupported),
            _ => return Err(AddressError::InvalidUrl),
        }
        let authority = uri
            .authority()
            .filter(|authority| !authority.as_str().contains('@'))
            .ok_or(AddressError::InvalidUrl)?;
        let host = authority.host();
        // hyper's accessor returns `None` for an invalid port too, so the port is parsed here.
        let port = match authority.as_str().strip_prefix(host) {
            Some("") => Some(80),
            Some(rest) => rest
                .strip_prefix(':')
                .filter(|port| !port.starts_with('+'))
                .and_then(|port| port.parse::<u16>().ok()),
            None => None,
        };
        let port = port.filter(|port| *port != 0).ok_or(AddressError::InvalidUrl)?;
        let literal = host.trim_start_matches('[').trim_end_matches(']');
        let endpoint = match literal.parse::<IpAddr>() {
            Ok(ip) => Endpoint::Ip(SocketAddr::new(ip, port)),
            Err(_) if host.eq_ignore_ascii_case("localhost") => Endpoint::Localhost(port),
            Err(_) => Endpoint::Name(host.to_owned(), port),
        };
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(Self { endpoint, authority: authority.to_string(), path })
    }
}

/// CIDR block such as `10.0.0.0/8` or `fd00::/8`; a single address is a block of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    pub address: IpAddr,
    /// Length of the prefix in bits, 0-32 or 0-128.
    pub prefix_len: u8,
}

impl Cidr {
    pub fn contains(&self, address: IpAddr) -> bool {
        // The bits of an IPv4 address are the highest ones, as those of a prefix.
        let bits = |address: IpAddr| match address {
            IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
            IpAddr::V6(address) => address.to_bits(),
        };
        let difference = bits(self.address) ^ bits(address);
        self.address.is_ipv4() == address.is_ipv4()
            && difference.leading_zeros() >= u32::from(self.prefix_len)
    }
}

impl FromStr for Cidr {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (address, length) =
            text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
        let address: IpAddr = address.parse().map_err(|_| AddressError::InvalidCidr)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let prefix_len = length.map_or(Ok(most), str::parse).map_err(|_| AddressError::InvalidCidr)?;
        if prefix_len > most { Err(AddressError::InvalidCidr) } else { Ok(Self { address, prefix_len }) }
    }
}

/// Clients that may call the probe listener: a CIDR block, or the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clients {
    Block(Cidr),
    /// The node's addresses and the Pod's gateways, from which kubelet sends its requests.
    Node,
}

impl FromStr for Clients {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        match text {
            "node" => Ok(Self::Node),
            block => block.parse().map(Self::Block).map_err(|_| AddressError::InvalidClients),
        }
    }
}

impl From<IpAddr> for Cidr {
    fn from(address: IpAddr) -> Self {
        Self { address, prefix_len: if address.is_ipv4() { 32 } else { 128 } }
    }
}

/// Returns the path of a probe or a metrics target without its query, which may contain a token.
pub fn without_query(path: &str) -> String {
    match path.split_once('?') {
        Some((path, _)) => format!("{path}?…"),
        None => path.to_owned(),
    }
}

fn socket_path(path: &str) -> Result<PathBuf, AddressError> {
    match path {
        _ if path.len() > SOCKET_PATH_LIMIT => Err(AddressError::LongPath(path.len())),
        _ if path.starts_with('/') => Ok(PathBuf::from(path)),
        _ => Err(AddressError::RelativePath),
    }
}

#[cfg(test)]
mod tests;
