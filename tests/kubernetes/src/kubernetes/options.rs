//! What a control plane is to be.

use std::net::{IpAddr, Ipv4Addr};

/// How a control plane is started. As it comes, it is one for tests without a node: an API server on a free port of loopback, with
/// nobody behind it who makes or changes objects.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the API server listens.
    pub bind: IpAddr,
    /// The port there; a free one where `None`.
    pub port: Option<u16>,
    /// More flags of the API server.
    pub api_server_flags: Vec<String>,
    /// Do Pods get a ServiceAccount, its token and the authority? No Pod is made before its namespace has an account, which is the
    /// controller manager's to make.
    pub service_accounts: bool,
    /// Does the controller manager run?
    pub controller_manager: bool,
    /// Does the scheduler run?
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
