//! Validated configuration of the command `run`.

mod envoy;
mod probes;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use nix::unistd::Gid;
use tracing::level_filters::LevelFilter;

use super::Environment;
use super::bootstrap::{absolute, check_listeners_disjoint, first_instance_ip, nonzero_port};
use super::metrics::metrics_config;
use crate::args::{EnvoyRestart, Probes, RunArgs, go_duration};
use crate::machine::Machine;
#[cfg(feature = "vm")]
use crate::vm::VmConfig;
use address::{Endpoint, HttpUrl, LocalAddress, OrOff};
use agent_output::exit::Failure;
use agent_output::log::LogFormat;
use agent_server::local_peer::find_group;
use agent_server::readiness_server::LivenessConfig;
pub use envoy::EnvoyProcessConfig;
use envoy::{envoy_args, envoy_binary, readable, sidecar_with_ready_listener};
use envoy_bootstrap::filter_choice::FilterChoice;
use envoy_process::config_source::{EnvoyConfigSource, SidecarConfig};
use envoy_process::drain;
use envoy_process::process::EnvoyCommand;
use envoy_process::restart_policy::RestartMode;
pub use probes::ProbesConfig;
use probes::probes_config;
use readiness::Dynamic;
use scrape::MetricsConfig;

/// Path of the data-path check if the URL has none. It names a probe that cannot exist, because `~`
/// is not a valid container name; the filter answers it without calling the application.
const DATA_PATH: &str = "/app-health/~/readyz";
/// Istio's variable with the minimum drain duration, in Go's syntax.
const MINIMUM_DRAIN_DURATION: &str = "MINIMUM_DRAIN_DURATION";
/// Default of the minimum drain duration.
const DRAIN: Duration = Duration::from_secs(5);
/// Default address of the admin port if the agent does not render Envoy's configuration.
const EXTERNAL_ENVOY_ADMIN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 15000);
/// Default number of worker threads without a CPU limit.
const CONCURRENCY: u32 = 2;

#[derive(Debug)]
pub struct RunConfig {
    /// Where kubelet asks for readiness.
    pub ready_address: SocketAddr,
    /// False if the readiness server is on the probes' port only.
    pub has_ready_listener: bool,
    /// Address of the server of Envoy's metrics; `None` if it is disabled, or if the agent does not render
    /// Envoy's configuration.
    pub stats_address: Option<SocketAddr>,
    /// `None` if Envoy answers probes, or nothing does.
    pub probes: Option<ProbesConfig>,
    /// Address of the local server.
    pub local_address: LocalAddress,
    /// Group whose members may use the local server's Unix socket.
    pub local_group: Option<Gid>,
    /// Absolute path of the state directory.
    pub state_dir: PathBuf,
    /// Address of Envoy's admin port.
    pub admin: LocalAddress,
    /// URL of the data-path check; `None` disables it.
    pub data_path: Option<HttpUrl>,
    /// False if the data-path check only tells an Envoy that hangs, and is no condition of readiness.
    pub requires_data_path: bool,
    /// Whether clusters and listeners come over xDS.
    pub dynamic: Dynamic,
    /// Initial timeout of an admin request.
    pub admin_timeout: Duration,
    /// `None` if /healthz/live is disabled.
    pub live: Option<LivenessConfig>,
    pub drain: drain::DrainSettings,
    /// `None` if an external process starts Envoy.
    pub envoy: Option<EnvoyProcessConfig>,
    pub metrics: MetricsConfig,
    #[cfg(feature = "vm")]
    pub vm: VmConfig,
    pub log_level: LevelFilter,
    pub log_format: LogFormat,
    /// Settings that were accepted but ignored, one line each.
    pub warnings: Vec<String>,
}

impl RunConfig {
    /// Validates all settings. It rejects what `bootstrap` would reject, flags that are mutually
    /// exclusive, and a missing Envoy binary.
    pub fn new(args: RunArgs, environment: &Environment) -> Result<Self, Failure> {
        Self::on(args, environment, &Machine::here())
    }

    pub(super) fn on(args: RunArgs, environment: &Environment, machine: &Machine) -> Result<Self, Failure> {
        check_exclusive(&args)?;
        let drain = drain_settings(&args, environment)?;
        let RunArgs {
            sidecar,
            probes,
            ready_address,
            local_group,
            envoy_config,
            user_config,
            envoy,
            concurrency,
            no_envoy,
            envoy_restart,
            envoy_restart_limit,
            envoy_restart_window_seconds,
            envoy_hang_seconds,
            dynamic,
            data_path,
            admin_timeout_seconds,
            live,
            live_admin_seconds,
            drain_seconds: _,
            drain_deadline_seconds: _,
            drain_scope: _,
            drain_keeps_ready: _,
            metrics_envoy,
            metrics_target,
            metrics_target_label,
            log_level,
            log_format,
            vm,
            args,
        } = args;
        let ready_address = nonzero_port("--ready-address", machine.any_address(ready_address))?;
        let (local_address, probe_address) = (sidecar.local_address.clone(), sidecar.probe_address);
        let local_group = local_group.map(|name| local_group_id(&name, &local_address)).transpose()?;
        #[cfg_attr(not(feature = "vm"), expect(unused_variables, reason = "it is only checked"))]
        let instance_ip = first_instance_ip(&sidecar.instance_ip, environment, machine)?;
        let (given_admin, query_version) = (sidecar.admin.clone(), sidecar.envoy_version.is_none());
        let unknown = super::unknown_flag_variables(environment);
        let mut warnings: Vec<String> =
            unknown.into_iter().map(|names| format!("unknown environment variables: {names}")).collect();
        let ready_listener = ("--ready-address", LocalAddress::Tcp(ready_address));
        let state_dir = absolute("--state-dir", &sidecar.state_dir)?;
        let probes = match probes {
            Probes::Envoy => None,
            Probes::Agent => Some(probes_config(
                sidecar.clone(),
                local_address.clone(),
                &ready_listener,
                environment,
                machine,
            )?),
        };
        let mut files = match (no_envoy, envoy_config, user_config) {
            (true, ..) => None,
            (_, Some(file), _) => Some(EnvoyConfigSource::Given(readable("--envoy-config", &file)?)),
            (_, None, user_config) => {
                let sidecar = sidecar_with_ready_listener(sidecar, &ready_listener, environment, machine)?;
                warnings.extend(sidecar.warnings.iter().cloned());
                Some(match user_config {
                    Some(file) => EnvoyConfigSource::Merged(readable("--user-config", &file)?, sidecar),
                    None => EnvoyConfigSource::Rendered(sidecar),
                })
            }
        };
        if probes.is_some() {
            files.as_mut().and_then(EnvoyConfigSource::sidecar_mut).map(SidecarConfig::leave_filter_out);
        }
        // The agent serves Envoy's metrics in place of the listener of the bootstrap.
        let stats_address = files.as_mut().and_then(EnvoyConfigSource::sidecar_mut).and_then(|sidecar| {
            let address = sidecar.bootstrap.stats_address.take()?;
            sidecar.bootstrap.reserved_ports.push(address.port());
            Some(address)
        });
        let rendered = files.as_ref().and_then(EnvoyConfigSource::sidecar).map(|sidecar| &sidecar.bootstrap);
        let admin = match rendered {
            Some(bootstrap) => bootstrap.admin.clone(),
            None => given_admin.unwrap_or(LocalAddress::Tcp(EXTERNAL_ENVOY_ADMIN)),
        };
        if rendered.is_none() {
            check_listeners_disjoint(&[
                ("--local-address", local_address.clone()),
                ("--admin", admin.clone()),
                ready_listener,
            ])?;
        }
        let mut reserved = probe::ports::PROXY_PORTS.to_vec();
        reserved.extend([ready_address.port(), probe_address.port()]);
        reserved.extend(rendered.into_iter().flat_map(|bootstrap| bootstrap.proxy_ports()));
        let (metrics, left_out) =
            metrics_config(metrics_envoy, &metrics_target, metrics_target_label, &reserved, environment)?;
        warnings.extend(left_out);
        #[cfg(not(feature = "vm"))]
        super::pod::reject_vm_flags(vm)?;
        #[cfg(feature = "vm")]
        let (vm, files) = {
            let (vm, ignored) = VmConfig::new(vm, instance_ip, &state_dir, &reserved, environment)?;
            warnings.extend(ignored);
            if let Some(sidecar) = files.as_mut().and_then(EnvoyConfigSource::sidecar_mut) {
                sidecar.bootstrap.xds = vm.xds_socket();
            }
            (vm, files)
        };
        let child = |files: EnvoyConfigSource| -> Result<EnvoyProcessConfig, Failure> {
            let concurrency = concurrency.or_else(crate::machine::cpu_quota).unwrap_or(CONCURRENCY);
            let args = envoy_args(args, files.sidecar().is_some())?;
            Ok(EnvoyProcessConfig {
                binary: envoy_binary(envoy, environment)?,
                flags: EnvoyCommand::flags(concurrency, drain.deadline, args),
                files,
                query_version,
                concurrency,
                restart: match envoy_restart {
                    EnvoyRestart::Never => RestartMode::Never,
                    EnvoyRestart::Always => RestartMode::Always,
                    EnvoyRestart::Limited => RestartMode::Limited {
                        limit: envoy_restart_limit.into(),
                        window: Duration::from_secs(envoy_restart_window_seconds.into()),
                    },
                },
                hang_limit: (envoy_hang_seconds > 0).then(|| Duration::from_secs(envoy_hang_seconds.into())),
            })
        };
        Ok(Self {
            ready_address,
            has_ready_listener: true,
            stats_address,
            local_address,
            local_group,
            state_dir,
            admin,
            data_path: data_path_url(data_path, probe_address, probes.is_some()),
            requires_data_path: true,
            probes,
            dynamic,
            admin_timeout: Duration::from_secs(admin_timeout_seconds.into()),
            live: live.then(|| LivenessConfig {
                admin: (live_admin_seconds > 0).then(|| Duration::from_secs(live_admin_seconds.into())),
            }),
            drain,
            envoy: files.map(child).transpose()?,
            metrics,
            #[cfg(feature = "vm")]
            vm,
            log_level,
            log_format,
            warnings,
        })
    }
}

impl RunConfig {
    /// Returns which form of the filter is rendered; `None` if the agent does not render Envoy's
    /// configuration.
    pub fn filter_choice(&self) -> Option<FilterChoice> {
        self.envoy.as_ref()?.files.sidecar()?.filter_choice
    }
}

/// Returns the group `name`, or an error if it does not exist or `address` is not a Unix socket.
fn local_group_id(name: &str, address: &LocalAddress) -> Result<Gid, Failure> {
    if !matches!(address, LocalAddress::Unix(_)) {
        return Err(Failure::Usage(format!(
            "--local-group = {name:?}: only a Unix socket has a group; set --local-address to unix:PATH"
        )));
    }
    find_group(name).ok_or_else(|| {
        Failure::Usage(format!("--local-group = {name:?}: no such group; create it with groupadd --system"))
    })
}

/// Checks mutually exclusive flags. clap's own check would count a boolean environment variable with
/// the value `false` as set.
fn check_exclusive(args: &RunArgs) -> Result<(), Failure> {
    let chosen =
        |groups: [(&'static str, bool); 2]| groups.iter().all(|(_, chosen)| *chosen).then_some(groups);
    let pairs = [
        [("--envoy-config", args.envoy_config.is_some()), ("--user-config", args.user_config.is_some())],
        [("--no-envoy", args.no_envoy), ("--envoy", args.envoy.is_some())],
        [("--no-envoy", args.no_envoy), ("-- ARGS", !args.args.is_empty())],
        [("--no-envoy", args.no_envoy), ("--envoy-config", args.envoy_config.is_some())],
        [("--no-envoy", args.no_envoy), ("--user-config", args.user_config.is_some())],
    ];
    match pairs.into_iter().find_map(chosen) {
        Some([(one, _), (other, _)]) => {
            Err(Failure::Usage(format!("{one} and {other} are mutually exclusive: set only one of them")))
        }
        None => Ok(()),
    }
}

fn drain_settings(args: &RunArgs, environment: &Environment) -> Result<drain::DrainSettings, Failure> {
    let deadline = Duration::from_secs(args.drain_deadline_seconds.into());
    let minimum = match (args.drain_seconds, environment.text(MINIMUM_DRAIN_DURATION)?) {
        (Some(seconds), _) => {
            let minimum = Duration::from_secs(seconds.into());
            if minimum > deadline {
                return Err(Failure::Usage(format!(
                    "--drain-seconds = {seconds}: longer than --drain-deadline-seconds = {}; raise that flag too, and the Pod's \
                     terminationGracePeriodSeconds",
                    deadline.as_secs()
                )));
            }
            minimum
        }
        (None, Some(text)) => go_duration(text).ok_or_else(|| {
            Failure::Usage(format!("{MINIMUM_DRAIN_DURATION} = {text:?}: must be a duration such as 5s"))
        })?,
        (None, None) => DRAIN,
    };
    Ok(drain::DrainSettings {
        minimum: minimum.min(deadline),
        deadline,
        scope: args.drain_scope,
        keeps_ready: args.drain_keeps_ready,
    })
}

/// `is_agent` is true if Envoy has no probe listener.
fn data_path_url(
    data_path: Option<OrOff<HttpUrl>>,
    probe_address: SocketAddr,
    is_agent: bool,
) -> Option<HttpUrl> {
    match data_path {
        Some(OrOff::On(url)) if url.path == "/" => Some(HttpUrl { path: DATA_PATH.to_owned(), ..url }),
        Some(OrOff::On(url)) => Some(url),
        Some(OrOff::Off) => None,
        None if is_agent => None,
        None => {
            let ip = match probe_address.ip() {
                // `[::]` also accepts IPv4, and it is replaced by 0.0.0.0 on a machine without
                // IPv6.
                ip if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
                ip => ip,
            };
            let address = SocketAddr::new(ip, probe_address.port());
            let authority = address.to_string();
            Some(HttpUrl { endpoint: Endpoint::Ip(address), authority, path: DATA_PATH.to_owned() })
        }
    }
}

#[cfg(test)]
mod tests;
