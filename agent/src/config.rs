//! From arguments and environment to checked values; the only file that reads the environment.

mod bootstrap;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::time::Duration;

use clap::builder::Resettable;
use clap::{Command, CommandFactory, FromArgMatches};
use tracing::level_filters::LevelFilter;

pub use bootstrap::BootstrapConfig;

use crate::address::{HttpUrl, LocalAddress, OrOff};
use crate::args::{Args, Dynamic, LogFormat, LogLevel, OnTimeout, RunArgs, WaitArgs};
use crate::exit::Failure;
use crate::machine::Machine;

/// `wait`: there is no sidecar in this Pod.
const NO_SIDECAR: &str = "NO_SIDECAR";
/// Where the data path is asked if the URL has no path: a probe that nobody can declare, since `~` is no container. The filter answers
/// it in place.
const DATA_PATH: &str = "/app-health/~/readyz";
/// Where commands are looked up.
const PATH: &str = "PATH";
/// What the names of flags' twins begin with.
const TWIN: &str = "APP_HEALTH_";

/// The process' environment as a value, so that tests have their own.
#[derive(Debug, Clone, Default)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// The real one.
    pub fn of_process() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// `name`'s value; an empty one counts as absent.
    fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    fn text(&self, name: &str) -> Result<Option<&str>, Failure> {
        let text = |value: &OsStr| Failure::Usage(format!("{name} = {value:?}: must be UTF-8"));
        self.get(name).map(|value| value.to_str().ok_or_else(|| text(value))).transpose()
    }

    /// The command line of this process; as [`Environment::args`].
    pub fn args_of_process(&self) -> Result<Args, clap::Error> {
        self.args(std::env::args_os())
    }

    /// The command line `words`, the program's name first. clap reads the flags' twins itself; here those that are empty are hidden
    /// from it, so that an empty one counts as absent, whatever the flag.
    pub fn args(&self, words: impl IntoIterator<Item = OsString>) -> Result<Args, clap::Error> {
        let mut command = self.without_empty_twins(Args::command());
        let matches = command.try_get_matches_from_mut(words)?;
        Args::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }

    fn without_empty_twins(&self, command: Command) -> Command {
        let is_empty = |name: &OsStr| self.0.get(name).is_some_and(|value| value.is_empty());
        command.mut_subcommands(|command| {
            command.mut_args(|flag| {
                if flag.get_env().is_some_and(is_empty) { flag.env(Resettable::Reset) } else { flag }
            })
        })
    }

    /// Names that look like a flag's twin and are none, in order, with commas. kubelet makes some for a Service called `app-health`, so they are
    /// worth a warning and no more.
    pub fn unknown_twins(&self) -> Option<String> {
        let args = Args::command();
        let flags = args.get_subcommands().flat_map(|command| command.get_arguments());
        let known: BTreeSet<&OsStr> = flags.filter_map(|flag| flag.get_env()).collect();
        let names = self.0.keys().filter(|name| !known.contains(name.as_os_str()));
        let twins: Vec<&str> =
            names.filter_map(|name| name.to_str()).filter(|name| name.starts_with(TWIN)).collect();
        (!twins.is_empty()).then(|| twins.join(", "))
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(variables: [(&str, &str); N]) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

/// What `run` does.
#[derive(Debug)]
pub struct RunConfig {
    /// Of the readiness server.
    pub ready_address: SocketAddr,
    /// Of the watched Envoy.
    pub admin: LocalAddress,
    /// Absent: the data path is not asked.
    pub data_path: Option<HttpUrl>,
    /// Do clusters and listeners come over xDS?
    pub dynamic: Dynamic,
    /// First deadline of an admin question.
    pub admin_timeout: Duration,
    /// The least severe lines that are logged.
    pub log_level: LevelFilter,
    /// How they look.
    pub log_format: LogFormat,
    /// Names of the environment that mean nothing.
    pub unknown_twins: Option<String>,
}

impl RunConfig {
    /// Refuses to run without `--no-envoy`, since this version starts no Envoy.
    pub fn new(args: RunArgs, environment: &Environment) -> Result<Self, Failure> {
        let RunArgs {
            no_envoy,
            ready_address,
            admin,
            data_path,
            dynamic,
            admin_timeout_seconds,
            log_level,
            log_format,
        } = args;
        if !no_envoy {
            return Err(Failure::Usage(
                "run: this version does not start Envoy itself; start it with what `app-health-agent bootstrap` prints, and type \
                 `app-health-agent run --no-envoy`"
                    .to_owned(),
            ));
        }
        let data_path = match data_path {
            OrOff::On(url) if url.path == "/" => Some(HttpUrl { path: DATA_PATH.to_owned(), ..url }),
            OrOff::On(url) => Some(url),
            OrOff::Off => None,
        };
        let log_level = match log_level {
            LogLevel::Error => LevelFilter::ERROR,
            LogLevel::Warn => LevelFilter::WARN,
            LogLevel::Info => LevelFilter::INFO,
            LogLevel::Debug => LevelFilter::DEBUG,
            LogLevel::Trace => LevelFilter::TRACE,
        };
        Ok(Self {
            ready_address: Machine::here().any_address(ready_address),
            admin,
            data_path,
            dynamic,
            admin_timeout: Duration::from_secs(admin_timeout_seconds.into()),
            log_level,
            log_format,
            unknown_twins: environment.unknown_twins(),
        })
    }
}

/// What `wait` does.
#[derive(Debug, Clone)]
pub struct WaitConfig {
    /// Of the whole wait; zero is one try.
    pub timeout: Duration,
    /// Of one request.
    pub request_timeout: Duration,
    /// Longest pause between tries.
    pub period: Duration,
    /// Whom to ask.
    pub url: HttpUrl,
    /// When the time is over.
    pub on_timeout: OnTimeout,
    /// Present: there is no sidecar if nothing accepts for so long from the start.
    pub optional: Option<Duration>,
    /// Present: no try at all, and the name of what says so.
    pub no_sidecar: Option<&'static str>,
    /// What to become: file and arguments.
    pub command: Vec<OsString>,
    /// Where the command is looked up.
    pub path: OsString,
}

impl WaitConfig {
    /// Always succeeds today; the type leaves room for values that exclude each other.
    pub fn new(args: WaitArgs, environment: &Environment) -> Result<Self, Failure> {
        let WaitArgs {
            timeout_seconds,
            request_timeout_millis,
            period_millis,
            url,
            on_timeout,
            optional,
            optional_millis,
            no_sidecar,
            termination_message: _, // read by `main`, which also has to write it when the configuration is refused
            command,
        } = args;
        let says_so = |value: &OsStr| !value.eq_ignore_ascii_case("false") && value != "0";
        let no_sidecar = if no_sidecar {
            Some("--noSidecar")
        } else {
            environment.get(NO_SIDECAR).filter(|value| says_so(value)).map(|_| NO_SIDECAR)
        };
        Ok(Self {
            timeout: Duration::from_secs(timeout_seconds.into()),
            request_timeout: Duration::from_millis(request_timeout_millis.into()),
            period: Duration::from_millis(period_millis.into()),
            url,
            on_timeout,
            optional: optional.then(|| Duration::from_millis(optional_millis.into())),
            no_sidecar,
            command,
            path: environment.get(PATH).unwrap_or_default().to_owned(),
        })
    }
}

#[cfg(test)]
mod tests;
