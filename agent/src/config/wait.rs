//! Validated configuration of the command `wait`.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use super::Environment;
use crate::args::{OnTimeout, WaitArgs};
use address::HttpUrl;

/// Variable that says that this Pod has no sidecar.
const NO_SIDECAR: &str = "NO_SIDECAR";

#[derive(Debug, Clone)]
pub struct WaitConfig {
    /// Timeout of the whole wait; zero means a single attempt.
    pub timeout: Duration,
    /// Timeout of one request.
    pub request_timeout: Duration,
    /// Longest pause between attempts.
    pub period: Duration,
    pub url: HttpUrl,
    pub on_timeout: OnTimeout,
    /// If set, and no connection is accepted for this long from the start, the Pod has no sidecar.
    pub optional: Option<Duration>,
    /// If set, no request is sent; the value names the setting that disabled the wait.
    pub no_sidecar: Option<&'static str>,
    /// Command to execute afterwards: program and arguments.
    pub command: Vec<OsString>,
    /// Search path for the command.
    pub path: OsString,
}

impl WaitConfig {
    pub fn new(args: WaitArgs, environment: &Environment) -> Self {
        let WaitArgs {
            timeout_seconds,
            request_timeout_millis,
            period_millis,
            url,
            on_timeout,
            optional,
            optional_millis,
            no_sidecar,
            termination_message: _, // read by `main`, which must write it even if the configuration is rejected
            command,
        } = args;
        let says_so = |value: &OsStr| !value.eq_ignore_ascii_case("false") && value != "0";
        let no_sidecar = if no_sidecar {
            Some("--noSidecar")
        } else {
            environment.get(NO_SIDECAR).filter(|value| says_so(value)).map(|_| NO_SIDECAR)
        };
        Self {
            timeout: Duration::from_secs(timeout_seconds.into()),
            request_timeout: Duration::from_millis(request_timeout_millis.into()),
            period: Duration::from_millis(period_millis.into()),
            url,
            on_timeout,
            optional: optional.then(|| Duration::from_millis(optional_millis.into())),
            no_sidecar,
            command,
            path: environment.get(super::PATH).unwrap_or_default().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
