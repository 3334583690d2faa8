//! Validated configuration of a virtual machine: its health checks and where they are reported.

mod discovery;
mod health;

use std::net::IpAddr;
use std::path::Path;

use super::{Environment, bootstrap};
use crate::args::{VmArgs, Xds};
use crate::machine;
use crate::vm::VmConfig;
use agent_output::exit::Failure;
use discovery::{discovery_config, proxy_config};
use envoy_bootstrap::bootstrap::XdsSocket;
use health::health_config;

impl VmConfig {
    /// Returns the configuration with its warnings. `proxy_ports` are ports that a probe must not
    /// use.
    pub(super) fn new(
        args: VmArgs,
        instance_ip: IpAddr,
        state_dir: &Path,
        proxy_ports: &[u16],
        environment: &Environment,
    ) -> Result<(Self, Vec<String>), Failure> {
        let proxy = proxy_config(&args.discovery, state_dir)?;
        let is_delta = args.discovery.xds == Xds::Delta;
        let (health, warnings) = health_config(args.health, instance_ip, proxy_ports, environment)?;
        let group = health.group.as_ref().map(|file| &file.group);
        let discovery =
            discovery_config(args.discovery, group, instance_ip, &machine::hostname(), environment)?;
        let config = Self { health, discovery, proxy, is_delta, istio: None };
        Ok((config, warnings))
    }

    /// Returns the socket that a rendered bootstrap uses.
    pub(super) fn xds_socket(&self) -> Option<XdsSocket> {
        let (proxy, discovery) = (self.proxy.as_ref()?, self.discovery.as_ref()?);
        let node_id = discovery.node.id.clone();
        Some(XdsSocket { path: proxy.sockets.first()?.clone(), is_delta: self.is_delta, node_id })
    }
}
