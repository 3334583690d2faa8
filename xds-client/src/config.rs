//! Configuration of the stream; the agent's flags become it.

use std::path::PathBuf;
use std::time::Duration;

use xds::{Node, Variant};

use super::tls::{San, TlsFiles};
use address::Endpoint;

/// Configuration of the stream to a discovery server.
#[derive(Debug, Clone)]
pub struct DiscoveryConfig {
    /// At least one server.
    pub servers: Vec<DiscoveryServer>,
    /// `None` for plaintext.
    pub tls: Option<TlsFiles>,
    /// File with the token that authenticates the agent.
    pub token_file: Option<PathBuf>,
    pub variant: Variant,
    /// The node identity, without the probe.
    pub node: Node,
    /// Interval towards an app-health server; at least one second.
    pub heartbeat: Duration,
    /// Interval towards a server that implements only Istio's protocol; `None` disables it.
    pub istio_heartbeat: Option<Duration>,
    /// The longest wait for the acknowledgement of the final report.
    pub final_report_timeout: Duration,
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

/// File name in the state directory.
const SOCKET: &str = "xds.sock";

/// Configuration of `--proxy-xds`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyConfig {
    /// Absolute path of the directory with the socket and the stored configuration.
    pub state_dir: PathBuf,
    /// `None` disables the stored configuration.
    pub max_age: Option<Duration>,
}

impl ProxyConfig {
    /// Returns the path of the socket that Envoy connects to.
    pub fn socket(&self) -> PathBuf {
        self.state_dir.join(SOCKET)
    }
}
