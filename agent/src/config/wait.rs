//! From the arguments of `wait` to checked values.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use super::Environment;
use crate::address::HttpUrl;
use crate::args::{OnTimeout, WaitArgs};
use crate::exit::Failure;

/// There is no sidecar in this Pod.
const NO_SIDECAR: &str = "NO_SIDECAR";

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
            path: environment.get(super::PATH).unwrap_or_default().to_owned(),
        })
    }
}

#[cfg(test)]
mod tests;
