//! Configuration of the stream; the agent's flags become it.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::HeaderMap;
use hyper::http::uri::Authority;
use xds::{Node, Variant};

use super::tls::{San, TlsFiles};
use super::token::TokenFile;
use address::Endpoint;

/// Configuration of the stream to a discovery server.
#[derive(Debug, Clone)]
pub struct DiscoveryConfig {
    /// At least one server.
    pub servers: Vec<DiscoveryServer>,
    /// `None` for plaintext.
    pub tls: Option<TlsFiles>,
    /// The token that authenticates the agent.
    pub token: Option<TokenFile>,
    /// Headers that are added to each request.
    pub headers: HeaderMap,
    pub variant: Variant,
    /// The node identity, without the probe.
    pub node: Node,
    /// False if the stream is opened for Envoy only.
    pub reports_health: bool,
    /// Interval towards an app-health server; at least one second.
    pub heartbeat: Duration,
    /// Interval towards a server that implements only Istio's protocol; `None` disables it.
    pub istio_heartbeat: Option<Duration>,
    /// The longest wait for the acknowledgement of the final report.
    pub final_report_timeout: Duration,
    /// Resources that the agent itself subscribes to, once Envoy has asked for listeners.
    pub own: Vec<OwnType>,
    /// Maximum size of a response for Envoy, in bytes.
    pub response_limit: usize,
    /// True if WebAssembly from other machines is refused, because only Istio's agent could load it.
    pub refuses_remote_wasm: bool,
}

impl DiscoveryConfig {
    /// The default of `response_limit`.
    pub const RESPONSE_LIMIT: usize = 32 << 20;
}

/// A type of resources for the agent itself, of which there is one.
#[derive(Clone)]
pub struct OwnType {
    pub type_url: &'static str,
    /// Puts an encoded resource in use, also the stored one at the start. The error says why it is refused.
    pub accept: Arc<Accept>,
}

/// What puts a resource in use.
pub type Accept = dyn Fn(&Bytes) -> Result<(), String> + Send + Sync;

impl fmt::Debug for OwnType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.type_url)
    }
}

/// One value of `--discovery`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveryServer {
    /// The value as given, for example `discovery.example:15012`.
    pub authority: String,
    pub endpoint: Endpoint,
    /// Name that the server's certificate must carry.
    pub san: San,
}

impl DiscoveryServer {
    /// Parses `HOST:PORT`, with brackets around an IPv6 address. The certificate must carry `san`, or the host.
    /// `None` if this is no such address.
    pub fn parse(text: &str, san: Option<&str>) -> Option<Self> {
        let authority: Authority = text.parse().ok()?;
        let port = authority.port_u16().filter(|port| *port != 0 && !text.contains('@'))?;
        let host = authority.host();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let endpoint = match bare.parse::<IpAddr>() {
            Ok(ip) => Endpoint::Ip((ip, port).into()),
            Err(_) if host.is_empty() || bare != host => return None,
            Err(_) if host.eq_ignore_ascii_case("localhost") => Endpoint::Localhost(port),
            Err(_) => Endpoint::Name(host.to_owned(), port),
        };
        let san = San::new(san.unwrap_or(bare), bare)?;
        Some(Self { authority: text.to_owned(), endpoint, san })
    }
}

/// Configuration of `--proxy-xds`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyConfig {
    /// Absolute path of the directory with the stored configuration.
    pub state_dir: PathBuf,
    /// `None` disables the stored configuration.
    pub max_age: Option<Duration>,
    /// Absolute paths of the sockets that Envoy connects to. Each serves ADS and SDS.
    pub sockets: Vec<PathBuf>,
}
