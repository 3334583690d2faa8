//! Which Envoy binary is started, and with which files and flags.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::config::bootstrap::absolute;
use crate::config::{Environment, PATH};
use crate::exit::Failure;
use crate::program::{self, Missing};

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

/// Returns the user's flags for Envoy, or an error if one of them is set by the agent.
pub(super) fn envoy_args(args: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
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
        None => Ok(args),
    }
}
