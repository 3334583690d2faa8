//! Which Envoy binary is started, and with which files and flags.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::args::SidecarArgs;
use crate::config::bootstrap::{absolute, check_listeners_disjoint, listeners, sidecar_config};
use crate::config::{Environment, PATH};
use crate::machine::Machine;
use crate::program::{self, Missing};
use address::LocalAddress;
use agent_output::exit::Failure;
use envoy_process::config_source::{EnvoyConfigSource, SidecarConfig};
use envoy_process::restart_policy::RestartMode;

/// Flags of Envoy that the agent sets itself.
const OUR_ENVOY_FLAGS: [&str; 7] = [
    "--config-path",
    "--config-yaml",
    "--disable-hot-restart",
    "--concurrency",
    "--drain-strategy",
    "--drain-time-s",
    "--mode",
];

const COMPONENT_LOG_LEVEL: &str = "--component-log-level";
/// Level of the logger with which Envoy logs paths of `connect-udp` requests as warnings, before any limit
/// on requests, and whatever the listener permits.
const QUIET: &str = "misc:error";

/// How the agent starts Envoy.
#[derive(Debug, Clone)]
pub struct EnvoyProcessConfig {
    /// Absolute path of the executable.
    pub binary: PathBuf,
    pub files: EnvoyConfigSource,
    /// True if no flag sets Envoy's version, so that the agent must query the binary.
    pub query_version: bool,
    /// Number of worker threads; 0 are as many as the machine has processors.
    pub concurrency: u32,
    /// Selects what follows an unexpected exit of Envoy.
    pub restart: RestartMode,
    /// Time without any response after which Envoy is killed; `None` disables that.
    pub hang_limit: Option<Duration>,
    /// Envoy's flags other than its configuration.
    pub flags: Vec<OsString>,
}

/// Returns the absolute path of a user's file, or an error if it cannot be opened.
pub(super) fn readable(flag: &str, file: &Path) -> Result<PathBuf, Failure> {
    let wrong = |error| Failure::Usage(format!("{flag} = {file:?}: {error}"));
    std::fs::File::open(file).map_err(wrong)?;
    absolute(flag, file)
}

/// Returns the path of the Envoy binary: the value of `--envoy`, or `envoy` on the PATH.
pub(super) fn envoy_binary(envoy: Option<PathBuf>, environment: &Environment) -> Result<PathBuf, Failure> {
    let path = environment.get(PATH).unwrap_or_default();
    let command = envoy.as_ref().map_or(OsStr::new("envoy"), |envoy| envoy.as_os_str());
    let found = program::find(command, path).map_err(|missing| {
        let how = match missing {
            Missing::NotFound => "not found",
            Missing::NotExecutable => "not executable",
        };
        Failure::Usage(match &envoy {
            Some(envoy) => format!("--envoy = {envoy:?}: {how}; the PATH is {path:?}"),
            None => format!(
                "no Envoy: `envoy` is {how} on the PATH {path:?}; set --envoy to its path, or --no-envoy to watch an external Envoy"
            ),
        })
    })?;
    absolute("--envoy", &found)
}

/// Returns the user's flags for Envoy, or an error if one of them is set by the agent. With listeners of
/// the agent (`is_rendered`), a logger that any client can use becomes quiet, unless the user sets its level.
pub(super) fn envoy_args(args: Vec<OsString>, is_rendered: bool) -> Result<Vec<OsString>, Failure> {
    let is_ours = |arg: &&OsString| {
        let arg = arg.to_string_lossy();
        let name = arg.split('=').next().unwrap_or_default();
        OUR_ENVOY_FLAGS.contains(&name) || arg == "--" || (arg.starts_with("-c") && !arg.starts_with("--"))
    };
    match args.iter().find(is_ours) {
        Some(arg) => Err(Failure::Usage(format!(
            "-- {}: the agent sets this flag of Envoy itself; see --envoy-config, --user-config, --concurrency, \
             --drain-deadline-seconds",
            arg.to_string_lossy()
        ))),
        None => Ok(if is_rendered { with_quiet_logger(args) } else { args }),
    }
}

/// Envoy accepts the flag only once.
fn with_quiet_logger(mut args: Vec<OsString>) -> Vec<OsString> {
    let assigned = format!("{COMPONENT_LOG_LEVEL}=");
    let is_flag = |arg: &OsString| arg == COMPONENT_LOG_LEVEL;
    let position = match args.iter().position(is_flag) {
        Some(flag) => Some(flag + 1),
        None => args.iter().position(|arg| arg.to_string_lossy().starts_with(&assigned)),
    };
    match position.map(|position| args.get_mut(position)) {
        Some(Some(levels)) if !levels.to_string_lossy().contains("misc:") => levels.push(format!(",{QUIET}")),
        Some(_) => {}
        None => args.extend([COMPONENT_LOG_LEVEL, QUIET].map(OsString::from)),
    }
    args
}

/// Returns the rendered configuration and reserves the readiness port: no other listener may
/// overlap with it, and no probe may target it.
pub(super) fn sidecar_with_ready_listener(
    args: SidecarArgs,
    ready: &(&'static str, LocalAddress),
    environment: &Environment,
    machine: &Machine,
) -> Result<Box<SidecarConfig>, Failure> {
    let mut sidecar = sidecar_config(args, false, environment, machine)?;
    if let LocalAddress::Tcp(address) = &ready.1 {
        sidecar.bootstrap.reserved_ports.push(address.port());
    }
    let mut all = listeners(&sidecar.bootstrap);
    all.push(ready.clone());
    check_listeners_disjoint(&all)?;
    probe::PluginConfig::parse(sidecar.bootstrap.plugin_configuration().as_bytes())
        .map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(Box::new(sidecar))
}
