//! From the arguments of `bootstrap` to checked values.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use super::Environment;
use crate::address::{LocalAddress, OrOff, overlap};
use crate::args::{BootstrapArgs, SidecarArgs, SourceBind};
use crate::bootstrap::{Bootstrap, FilterCode};
use crate::envoy_version::EnvoyVersion;
use crate::exit::Failure;
use crate::machine::{Machine, PROBE_SOURCE4, PROBE_SOURCE6};
use crate::state_dir;

/// Istio's prober table, JSON.
const APP_PROBERS: &str = "ISTIO_KUBE_APP_PROBERS";
/// Istio's name of the Pod's address.
const INSTANCE_IP: &str = "INSTANCE_IP";

/// What `bootstrap` does.
#[derive(Debug)]
pub struct BootstrapConfig {
    /// What is rendered, and what it needs.
    pub sidecar: SidecarConfig,
    /// Absent: stdout.
    pub output: Option<PathBuf>,
}

impl BootstrapConfig {
    /// Refuses a prober table that the filter would refuse, with its words, and addresses that cannot be.
    pub fn new(args: BootstrapArgs, environment: &Environment) -> Result<Self, Failure> {
        Self::on(args, environment, &Machine::here())
    }

    fn on(args: BootstrapArgs, environment: &Environment, machine: &Machine) -> Result<Self, Failure> {
        let BootstrapArgs { sidecar, inline_filter, output } = args;
        let mut sidecar = SidecarConfig::on(sidecar, inline_filter, environment, machine)?;
        sidecar
            .warnings
            .extend(environment.unknown_twins().map(|names| format!("no such settings: {names}")));
        Ok(Self { sidecar, output })
    }
}

/// A bootstrap, and the files that it names.
#[derive(Debug, Clone)]
pub struct SidecarConfig {
    /// What is rendered; its filter is `filter` once that is where it shall be.
    pub bootstrap: Bootstrap,
    /// For the filter and the admin socket, absolute.
    pub state_dir: PathBuf,
    /// The filter or the admin socket lies in it, so it has to be there: Envoy makes no folder.
    pub make_state_dir: bool,
    /// The filter's bytes, to be written to the state directory, if they go there.
    pub write_filter: bool,
    /// What was accepted and ignored, a line each.
    pub warnings: Vec<String>,
}

impl SidecarConfig {
    pub(super) fn on(
        args: SidecarArgs,
        inline_filter: bool,
        environment: &Environment,
        machine: &Machine,
    ) -> Result<Self, Failure> {
        let SidecarArgs {
            instance_ip,
            probe_address,
            stats_address,
            local_address,
            admin,
            state_dir,
            filter_wasm,
            allow_from,
            reserved_port,
            source_bind,
            envoy_version,
        } = args;
        let state_dir = absolute("--state-dir", &state_dir)?;
        let admin = match admin {
            Some(admin) => admin,
            None => format!("unix:{}", state_dir.join("admin.sock").display()).parse().map_err(|error| {
                Failure::Usage(format!("--state-dir = {state_dir:?}: the admin socket in it: {error}"))
            })?,
        };
        let instance_ip = first_instance_ip(&instance_ip, environment, machine)?;
        let stats_address = match stats_address {
            OrOff::On(address) => Some(not_port_0("--stats-address", machine.any_address(address))?),
            OrOff::Off => None,
        };
        let filter = filter_code(filter_wasm, inline_filter, &state_dir)?;
        let write_filter = filter == FilterCode::File(state_dir.join(state_dir::FILTER_FILE_NAME));
        let make_state_dir = write_filter
            || matches!(&admin, LocalAddress::Unix(socket) if socket.parent() == Some(&state_dir));
        let bootstrap = Bootstrap {
            probe_address: not_port_0("--probe-address", machine.any_address(probe_address))?,
            stats_address,
            local_address,
            admin,
            filter,
            allow_from,
            reserved_ports: reserved_port,
            sources: sources(source_bind, instance_ip, machine)?,
            instance_ip,
            envoy_version: envoy_version.unwrap_or(EnvoyVersion::NEWEST),
            app_probers: environment.text(APP_PROBERS)?.map(str::to_owned),
        };
        listeners_apart(&listeners(&bootstrap))?;
        let checked = probe::PluginConfig::parse(bootstrap.plugin_configuration().as_bytes())
            .map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(Self { bootstrap, state_dir, make_state_dir, write_filter, warnings: checked.warnings })
    }
}

/// A relative path means the folder that the agent was started in, and Envoy's may be another one.
pub(super) fn absolute(flag: &str, path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::Usage(format!("{flag} = {path:?}: {error}")))
}

/// The address that is probed: that of the flag, Istio's, or what the machine has.
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

/// Istio's INSTANCE_IP, which may be a list (status.podIPs): the first, as kubelet does.
fn istio_instance_ip(environment: &Environment) -> Result<Option<IpAddr>, Failure> {
    let Some(list) = environment.text(INSTANCE_IP)? else { return Ok(None) };
    let first = list.split(',').next().unwrap_or_default().trim();
    let wrong = |_| Failure::Usage(format!("{INSTANCE_IP} = {list:?}: must be an IPv4 or IPv6 address"));
    first.parse().map(Some).map_err(wrong)
}

pub(super) fn not_port_0(flag: &str, address: SocketAddr) -> Result<SocketAddr, Failure> {
    if address.port() == 0 {
        return Err(Failure::Usage(format!("{flag} = {address}: the port must be 1 to 65535")));
    }
    Ok(address)
}

/// The listeners of a bootstrap and the agent's local one, with the flags that say where they are.
pub(super) fn listeners(bootstrap: &Bootstrap) -> Vec<(&'static str, LocalAddress)> {
    let mut listeners = vec![
        ("--probe-address", LocalAddress::Tcp(bootstrap.probe_address)),
        ("--local-address", bootstrap.local_address.clone()),
        ("--admin", bootstrap.admin.clone()),
    ];
    listeners.extend(bootstrap.stats_address.map(|address| ("--stats-address", LocalAddress::Tcp(address))));
    listeners
}

/// Two listeners on one port: Envoy, or the agent beside it, could not start.
pub(super) fn listeners_apart(listeners: &[(&str, LocalAddress)]) -> Result<(), Failure> {
    for (index, (flag, address)) in listeners.iter().enumerate() {
        let taken = listeners[..index].iter().find(|(_, other)| match (address, other) {
            (LocalAddress::Tcp(one), LocalAddress::Tcp(other)) => overlap(*one, *other),
            (one, other) => one == other,
        });
        if let Some((other_flag, other)) = taken {
            return Err(Failure::Usage(format!(
                "{flag} = {address}: overlaps with {other_flag} = {other}; each listener needs a port of its own"
            )));
        }
    }
    Ok(())
}

fn filter_code(filter_wasm: Option<PathBuf>, inline: bool, state_dir: &Path) -> Result<FilterCode, Failure> {
    Ok(match (filter_wasm, inline) {
        (Some(file), true) => FilterCode::Inline(
            std::fs::read(&file)
                .map_err(|error| Failure::Usage(format!("--filter-wasm = {file:?}: {error}")))?,
        ),
        (Some(file), false) => FilterCode::File(absolute("--filter-wasm", &file)?),
        (None, true) => FilterCode::Inline(state_dir::FILTER.to_vec()),
        (None, false) => FilterCode::File(state_dir.join(state_dir::FILTER_FILE_NAME)),
    })
}

/// The addresses that probes leave from. Envoy takes the one of the target's family, and if there is none another one, which then fails:
/// so no address at all unless the family of `instance_ip` has one.
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
            "--source-bind = on: the Pod's address is {instance_ip}, and {PROBE_SOURCE6} is no address of this machine; put it on lo"
        )))
    } else {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests;
