//! The configuration of the probes that the agent answers itself.

use std::net::SocketAddr;

use super::envoy::sidecar_with_ready_listener;
use crate::args::SidecarArgs;
use crate::config::Environment;
use crate::config::bootstrap::check_listeners_disjoint;
use crate::machine::Machine;
use address::LocalAddress;
use agent_output::exit::Failure;
use envoy_bootstrap::filter_choice::WantedFilter;
use probe_server::{DeclaredProbes, ProbeClients};

/// What the agent's own probe listener needs.
#[derive(Debug)]
pub struct ProbesConfig {
    pub address: SocketAddr,
    pub declared: DeclaredProbes,
    pub clients: ProbeClients,
    /// Set if the port also has the paths of Istio's agent: true if only clients of this host may read
    /// the metrics.
    pub istio_metrics: Option<bool>,
}

/// Validates the flags about probes. It rejects the tables that the filter rejects, and those with probes over
/// TLS if this build has none.
pub(super) fn probes_config(
    args: SidecarArgs,
    local: LocalAddress,
    ready: &(&'static str, LocalAddress),
    environment: &Environment,
    machine: &Machine,
) -> Result<ProbesConfig, Failure> {
    check_exclusive(&args)?;
    // Envoy's listeners are checked where its configuration is rendered.
    let bootstrap = sidecar_with_ready_listener(args, ready, environment, machine)?.bootstrap;
    check_listeners_disjoint(&[
        ("--probe-address", LocalAddress::Tcp(bootstrap.probe_address)),
        ("--local-address", local),
        ready.clone(),
    ])?;
    let config = probe::PluginConfig::parse(bootstrap.plugin_configuration().as_bytes())
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let declared = DeclaredProbes::new(config, &bootstrap.sources, cfg!(feature = "vm"))
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let clients = ProbeClients::new(bootstrap.allow_from, bootstrap.node);
    Ok(ProbesConfig { address: bootstrap.probe_address, declared, clients, istio_metrics: None })
}

/// Rejects flags about Envoy's filter.
fn check_exclusive(args: &SidecarArgs) -> Result<(), Failure> {
    let others = [
        ("--filter", args.filter != WantedFilter::Auto, "there is no filter"),
        ("--filter-wasm", args.filter_wasm.is_some(), "there is no filter"),
        ("--reuse-connections", args.reuse_connections, "each probe opens a connection, as kubelet does"),
    ];
    match others.into_iter().find(|(_, is_set, _)| *is_set) {
        Some((flag, _, why)) => Err(Failure::Usage(format!(
            "--probes = agent and {flag} are mutually exclusive: with --probes agent {why}"
        ))),
        None => Ok(()),
    }
}
