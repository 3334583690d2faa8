//! Validated configuration of the command `bootstrap`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use super::Environment;
use crate::args::{BootstrapArgs, SidecarArgs, SourceBind};
use crate::machine::Machine;
use address::{Cidr, Clients, LocalAddress, OrOff, PROBE_SOURCE4, PROBE_SOURCE6, conflicts};
use agent_output::exit::Failure;
use envoy_bootstrap::bootstrap::{Bootstrap, FilterCode};
use envoy_bootstrap::envoy_version::EnvoyVersion;
use envoy_bootstrap::filter_choice::{self, Circumstances, KnownVersion, WantedFilter};
use envoy_process::config_source::SidecarConfig;
use envoy_process::state_dir;

/// Istio's variable with the table of application probes, as JSON.
const APP_PROBERS: &str = "ISTIO_KUBE_APP_PROBERS";
/// Istio's variable with the Pod's IP addresses.
const INSTANCE_IP: &str = "INSTANCE_IP";

#[derive(Debug)]
pub struct BootstrapConfig {
    pub sidecar: SidecarConfig,
    /// Output file; `None` for stdout.
    pub output: Option<PathBuf>,
}

impl BootstrapConfig {
    /// Validates the arguments. It rejects the probe tables that the filter would reject, with the
    /// same error text, and addresses that are invalid or overlap.
    pub fn new(args: BootstrapArgs, environment: &Environment) -> Result<Self, Failure> {
        Self::on(args, environment, &Machine::here())
    }

    fn on(args: BootstrapArgs, environment: &Environment, machine: &Machine) -> Result<Self, Failure> {
        let BootstrapArgs { sidecar, inline_filter, output } = args;
        let mut sidecar = sidecar_config(sidecar, inline_filter, environment, machine)?;
        sidecar.warnings.extend(
            super::unknown_flag_variables(environment)
                .map(|names| format!("unknown environment variables: {names}")),
        );
        Ok(Self { sidecar, output })
    }
}

pub(super) fn sidecar_config(
    args: SidecarArgs,
    inline_filter: bool,
    environment: &Environment,
    machine: &Machine,
) -> Result<SidecarConfig, Failure> {
    let SidecarArgs {
        instance_ip,
        probe_address,
        stats_address,
        local_address,
        admin,
        state_dir,
        filter: wanted,
        filter_wasm,
        allow_from,
        node_ip,
        reserved_port,
        reuse_connections,
        source_bind,
        envoy_version,
    } = args;
    let state_dir = absolute("--state-dir", &state_dir)?;
    let admin = match admin {
        Some(admin) => admin,
        None => format!("unix:{}", state_dir.join("admin.sock").display()).parse().map_err(|error| {
            Failure::Usage(format!("--state-dir = {state_dir:?}: invalid path of the admin socket: {error}"))
        })?,
    };
    let instance_ip = first_instance_ip(&instance_ip, environment, machine)?;
    let stats_address = match stats_address {
        OrOff::On(address) => Some(nonzero_port("--stats-address", machine.any_address(address))?),
        OrOff::Off => None,
    };
    let callers = Callers::new(&allow_from, &node_ip, machine)?;
    check_exclusive(wanted, filter_wasm.is_some(), inline_filter)?;
    let given = given_filter(filter_wasm, inline_filter)?;
    let has_wasm_file = given.is_some();
    let create_state_dir =
        matches!(&admin, LocalAddress::Unix(socket) if socket.parent() == Some(&state_dir));
    let bootstrap = Bootstrap {
        probe_address: nonzero_port("--probe-address", machine.any_address(probe_address))?,
        stats_address,
        local_address,
        admin,
        filter: Some(given.unwrap_or_else(|| FilterCode::File(state_dir.join(state_dir::WASM.file_name)))),
        allow_from: callers.all,
        node: callers.node,
        hook_callers: callers.hooks,
        reserved_ports: reserved_port,
        reuse_connections,
        sources: sources(source_bind, instance_ip, machine)?,
        instance_ip,
        envoy_version: envoy_version.map_or(EnvoyVersion::NEWEST, |build| build.version),
        app_probers: environment.text(APP_PROBERS)?.map(str::to_owned),
        xds: None,
    };
    check_listeners_disjoint(&listeners(&bootstrap))?;
    let checked = probe::PluginConfig::parse(bootstrap.plugin_configuration().as_bytes())
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let circumstances = Circumstances {
        wanted,
        has_wasm_file,
        is_noexec: state_dir::is_noexec(&state_dir),
        has_empty_header: filter_choice::has_empty_header(&checked),
    };
    let version = envoy_version.map_or(KnownVersion::Unknown, KnownVersion::from);
    let filter_choice = Some(circumstances.choose(version));
    let warnings = checked.warnings;
    let mut config = SidecarConfig {
        bootstrap,
        filter_choice,
        circumstances,
        state_dir,
        create_state_dir,
        embedded: None,
        warnings,
    };
    config.apply_choice();
    Ok(config)
}

/// The clients of the probe listener.
struct Callers {
    /// Clients that may connect; if empty, any client may.
    all: Vec<Cidr>,
    /// Clients that may call hooks; `None` means all that may connect.
    hooks: Option<Vec<IpAddr>>,
    /// The node's addresses and the Pod's gateways; empty if `--node-ip` is not set.
    node: Vec<IpAddr>,
}

impl Callers {
    fn new(allow_from: &[Clients], node: &[IpAddr], machine: &Machine) -> Result<Self, Failure> {
        if node.is_empty() && allow_from.contains(&Clients::Node) {
            let text = "--allow-from = node: the node's addresses are unknown, set --node-ip (status.hostIP)";
            return Err(Failure::Usage(text.into()));
        }
        let gateways = machine.gateways.iter().filter(|_| !node.is_empty());
        let node: Vec<IpAddr> = node.iter().chain(gateways).copied().collect();
        let blocks = |clients: &Clients| match clients {
            Clients::Block(block) => vec![*block],
            Clients::Node => node.iter().copied().map(Cidr::from).collect(),
        };
        let all: Vec<Cidr> = allow_from.iter().flat_map(blocks).collect();
        let hooks = (all.is_empty() && !node.is_empty()).then(|| node.clone());
        Ok(Self { all, hooks, node })
    }
}

/// Returns the absolute path, because Envoy may run in another working directory than the agent.
pub(super) fn absolute(flag: &str, path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::Usage(format!("{flag} = {path:?}: {error}")))
}

/// Returns the IP address that probes target: from the flag, from Istio's variable, or from the
/// machine's interfaces.
pub(super) fn first_instance_ip(
    given: &[IpAddr],
    environment: &Environment,
    machine: &Machine,
) -> Result<IpAddr, Failure> {
    Ok(match given.first() {
        Some(address) => *address,
        None => istio_instance_ip(environment)?.or(machine.address).unwrap_or(Ipv4Addr::LOCALHOST.into()),
    })
}

/// Returns the first address of INSTANCE_IP, which may be a list (status.podIPs), as kubelet does.
fn istio_instance_ip(environment: &Environment) -> Result<Option<IpAddr>, Failure> {
    let Some(list) = environment.text(INSTANCE_IP)? else { return Ok(None) };
    let first = list.split(',').next().unwrap_or_default().trim();
    let wrong = |_| Failure::Usage(format!("{INSTANCE_IP} = {list:?}: must be an IPv4 or IPv6 address"));
    first.parse().map(Some).map_err(wrong)
}

pub(super) fn nonzero_port(flag: &str, address: SocketAddr) -> Result<SocketAddr, Failure> {
    if address.port() == 0 {
        return Err(Failure::Usage(format!("{flag} = {address}: the port must be 1 to 65535")));
    }
    Ok(address)
}

/// Returns the listeners of the bootstrap and the agent's local one, each with its flag.
pub(super) fn listeners(bootstrap: &Bootstrap) -> Vec<(&'static str, LocalAddress)> {
    let mut listeners = vec![
        ("--probe-address", LocalAddress::Tcp(bootstrap.probe_address)),
        ("--local-address", bootstrap.local_address.clone()),
        ("--admin", bootstrap.admin.clone()),
    ];
    listeners.extend(bootstrap.stats_address.map(|address| ("--stats-address", LocalAddress::Tcp(address))));
    listeners
}

/// Rejects listeners that overlap, because Envoy or the agent could not bind them.
pub(super) fn check_listeners_disjoint(listeners: &[(&str, LocalAddress)]) -> Result<(), Failure> {
    for (index, (flag, address)) in listeners.iter().enumerate() {
        let taken = listeners[..index].iter().find(|(_, other)| match (address, other) {
            (LocalAddress::Tcp(one), LocalAddress::Tcp(other)) => conflicts(*one, *other),
            (one, other) => one == other,
        });
        if let Some((other_flag, other)) = taken {
            return Err(Failure::Usage(format!(
                "{flag} = {address}: overlaps with {other_flag} = {other}; each listener needs its own address"
            )));
        }
    }
    Ok(())
}

fn check_exclusive(wanted: WantedFilter, has_file: bool, is_inline: bool) -> Result<(), Failure> {
    let other = match (wanted, has_file, is_inline) {
        (WantedFilter::Native, true, _) => "--filter-wasm",
        (WantedFilter::Native, false, true) => "--inline-filter",
        _ => return Ok(()),
    };
    Err(Failure::Usage(format!(
        "--filter = native and {other} are mutually exclusive: Envoy loads the native form from a file of its own"
    )))
}

/// Returns the wasm filter of the flags; `None` if the embedded one is written to the state directory.
fn given_filter(filter_wasm: Option<PathBuf>, inline: bool) -> Result<Option<FilterCode>, Failure> {
    Ok(match (filter_wasm, inline) {
        (Some(file), true) => Some(FilterCode::Inline(
            std::fs::read(&file)
                .map_err(|error| Failure::Usage(format!("--filter-wasm = {file:?}: {error}")))?,
        )),
        (Some(file), false) => Some(FilterCode::File(absolute("--filter-wasm", &file)?)),
        (None, true) => Some(FilterCode::Inline(state_dir::WASM.bytes())),
        (None, false) => None,
    })
}

/// Returns the source addresses of probes. Envoy uses the address of the target's family; if there
/// is none, it uses one of the other family, which then fails. Therefore the result is empty unless
/// it contains an address of the family of `instance_ip`.
fn sources(bind: SourceBind, instance_ip: IpAddr, machine: &Machine) -> Result<Vec<IpAddr>, Failure> {
    let has = |source: IpAddr| match source {
        IpAddr::V4(_) => machine.probe_source4 || bind == SourceBind::On,
        IpAddr::V6(_) => machine.probe_source6,
    };
    let sources: Vec<IpAddr> = match bind {
        SourceBind::Off => Vec::new(),
        _ => [PROBE_SOURCE4.into(), PROBE_SOURCE6.into()].into_iter().filter(|source| has(*source)).collect(),
    };
    if sources.iter().any(|source| source.is_ipv4() == instance_ip.is_ipv4()) {
        Ok(sources)
    } else if bind == SourceBind::On {
        Err(Failure::Usage(format!(
            "--source-bind = on: the Pod's address is {instance_ip}, and {PROBE_SOURCE6} is not an address of this machine; add it to the loopback interface"
        )))
    } else {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests;
