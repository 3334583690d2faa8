//! Converts the command line and the environment to validated configuration. This is the only
//! module that reads the environment.

mod bootstrap;
mod discovery;
mod drain_quit;
mod health;
mod istio;
mod metrics;
mod run;
mod wait;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};

use clap::builder::Resettable;
use clap::{Command, CommandFactory, FromArgMatches};

pub use bootstrap::{BootstrapConfig, SidecarConfig};
pub use drain_quit::{DrainConfig, QuitConfig};
pub use metrics::{MetricsConfig, Target};
pub use run::{EnvoyConfigSource, EnvoyProcessConfig, LivenessConfig, RunConfig};
pub use wait::WaitConfig;

use crate::args::Args;
use crate::exit::Failure;

/// Search path for executables.
const PATH: &str = "PATH";
/// Prefix of the environment variables that correspond to flags.
const VARIABLE_PREFIX: &str = "APP_HEALTH_";

/// The process environment as a value, so that tests can provide their own.
#[derive(Debug, Clone, Default)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// Returns the environment of this process.
    pub fn from_process() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// Returns the value of `name`; an empty value counts as absent.
    fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    fn text(&self, name: &str) -> Result<Option<&str>, Failure> {
        let text = |value: &OsStr| Failure::Usage(format!("{name} = {value:?}: must be UTF-8"));
        self.get(name).map(|value| value.to_str().ok_or_else(|| text(value))).transpose()
    }

    /// Parses the command line of this process.
    pub fn parse_args(&self) -> Result<Args, clap::Error> {
        self.args(std::env::args_os())
    }

    /// Parses the command line `words`, which starts with the program's name. clap reads the
    /// environment variables of flags itself; this method hides empty ones from it, so that an
    /// empty variable counts as absent.
    pub fn args(&self, words: impl IntoIterator<Item = OsString>) -> Result<Args, clap::Error> {
        let mut command = self.without_empty_variables(Args::command());
        let matches = command.try_get_matches_from_mut(words)?;
        Args::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }

    fn without_empty_variables(&self, command: Command) -> Command {
        let is_empty = |name: &OsStr| self.0.get(name).is_some_and(|value| value.is_empty());
        command.mut_subcommands(|command| {
            command.mut_args(|flag| {
                if flag.get_env().is_some_and(is_empty) { flag.env(Resettable::Reset) } else { flag }
            })
        })
    }

    /// Returns the sorted names that have the prefix of flag variables but belong to no flag,
    /// separated by commas. They cause only a warning, because kubelet sets such variables for a
    /// Service named `app-health`.
    pub fn unknown_flag_variables(&self) -> Option<String> {
        let args = Args::command();
        let flags = args.get_subcommands().flat_map(|command| command.get_arguments());
        let known: BTreeSet<&OsStr> = flags.filter_map(|flag| flag.get_env()).collect();
        let names = self.0.keys().filter(|name| !known.contains(name.as_os_str()));
        let variables: Vec<&str> =
            names.filter_map(|name| name.to_str()).filter(|name| name.starts_with(VARIABLE_PREFIX)).collect();
        (!variables.is_empty()).then(|| variables.join(", "))
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(variables: [(&str, &str); N]) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

#[cfg(test)]
mod tests;
