//! Settings of a control plane.

use std::net::{IpAddr, Ipv4Addr};

/// Settings of a control plane. The default is one for tests without a node: an API server on a
/// free loopback port, without any controllers.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address on which the API server listens.
    pub bind: IpAddr,
    /// The port of the API server; `None`: a free one.
    pub port: Option<u16>,
    /// Additional flags of the API server.
    pub api_server_flags: Vec<String>,
    /// Whether Pods get a ServiceAccount with its token and the CA certificate. Pods are rejected
    /// until their namespace has the default account, which the controller manager creates.
    pub service_accounts: bool,
    /// Whether the controller manager runs.
    pub controller_manager: bool,
    /// Whether the scheduler runs.
    pub scheduler: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            bind: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: None,
            api_server_flags: Vec::new(),
            service_accounts: false,
            controller_manager: false,
            scheduler: false,
        }
    }
}
